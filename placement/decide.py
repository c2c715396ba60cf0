"""decide(): where a container goes on one machine, and why. The enforcer calls it to act, the extender to predict.

The order of doubts, each settled before the next is asked:
  1. does it fit?         CPU requests within the NUMA nodes' CPUs that are nobody's own, memory within what is free;
  2. how narrow is it?    a set of NUMA nodes is wider only when the demand is;
  3. how near are its kin? the share of kin weight that would be local, weighted by closeness (10 / SLIT distance);
  4. can the rest follow?  room for the expected rest of the group;
  5. how empty is it?     then the lowest id, so that equal inputs give equal answers.
Candidates grow outward by distance from each NUMA node: n^2 of them for n NUMA nodes, not 2^n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.occupancy import Holding, Occupancy, Seat
from placement.optin import Cpus, Memory, OptIn, Policy, Scope
from placement.topology import Machine

MEMORY_RESERVE = 0.05
"""Share of a NUMA node's memory that a binding leaves free, above the kernel's watermarks (which are below 1 % on large machines)."""

KIN_SHARE, ROOM_SHARE, EMPTY_SHARE = 0.7, 0.2, 0.1
"""What kin, room and emptiness add to a score: kin lead however the others stand, and the others still use the range."""


@dataclass(frozen=True, slots=True)
class Request:
    """A container to place. demand: the container's own; pod_demand: its whole pod's."""

    pod: str
    container: str
    name: str
    opt_in: OptIn
    demand: Demand
    pod_demand: Demand

    @property
    def seat_key(self) -> str:
        return self.pod if self.opt_in.scope is Scope.POD else f"{self.pod}/{self.name}"

    @property
    def seat_demand(self) -> Demand:
        return self.pod_demand if self.opt_in.scope is Scope.POD else self.demand


@dataclass(frozen=True, slots=True)
class Kin:
    """What is known of a pod's peers. weights: by peer pod uid; empty: every member of its group counts alike.

    elsewhere: weight of peers that are not on this machine. expected: the NUMA nodes that the extender promised. room_milli: CPU
    that the rest of the group will still ask for. planned: the seat that the plan keeps for its workload.
    """

    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    elsewhere: float = 0.0
    expected: NumaSet = NumaSet()
    planned: NumaSet = NumaSet()
    room_milli: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """What was considered, its number, and what it did to the decision."""

    what: str
    number: str
    effect: str

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.effect}" if self.number else f"{self.what}: {self.effect}"


@dataclass(frozen=True, slots=True)
class Decision:
    """numa_nodes: the home. cpus, mems: for the cgroup. exclusive: those of the CPUs that become its own. score: 0 (worst) to 1.

    updates: new CPUs of other containers whose shared pool shrinks around the exclusive ones. fits: whether the demand fits at all.
    """

    numa_nodes: NumaSet
    cpus: CpuSet
    mems: NumaSet
    exclusive: CpuSet
    score: float
    fits: bool
    reasons: tuple[Reason, ...]
    updates: tuple[tuple[str, CpuSet], ...] = ()

    def seat(self, request: Request) -> Seat:
        return Seat(request.seat_key, request.pod, request.opt_in.group, self.numa_nodes, request.seat_demand)

    def holding(self, request: Request) -> Holding:
        return Holding(
            request.container,
            request.name,
            request.pod,
            request.seat_key,
            self.cpus,
            self.mems,
            self.exclusive,
        )


@dataclass(frozen=True, slots=True)
class _Candidate:
    numa_nodes: NumaSet
    fits: bool
    kin: float
    room: float
    empty: float

    @property
    def rank(self) -> tuple[bool, int, float, float, float, int]:
        """Smaller is better."""
        return (
            not self.fits,
            len(self.numa_nodes),
            -round(self.kin, 9),
            -round(self.room, 9),
            -round(self.empty, 9),
            self.numa_nodes.mask,
        )

    @property
    def score(self) -> float:
        return KIN_SHARE * self.kin + ROOM_SHARE * self.room + EMPTY_SHARE * self.empty if self.fits else 0.0


def decide(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> Decision:
    """The one function: same inputs, same answer, in both halves."""
    if request.opt_in.policy is Policy.NONE:
        return _open(machine, request, Reason("policy none", "", "CPUs and memory are left open"))
    considered = _considered(machine, occupancy, request, kin)
    best, why = _chosen(occupancy, request, kin, considered)
    if not best.fits:
        return _open(machine, request, _shortage(machine, request))
    return _granted(machine, occupancy, request, best, why)


def _considered(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> list[_Candidate]:
    load = occupancy.cpu_load(machine, but=request.seat_key)
    memory = _free_memory(machine, occupancy, request)
    pull = _pull(machine, occupancy, request, kin)
    free = {
        one: len(_usable(machine, occupancy, NumaSet.of((one,)), request)) * 1000 - load[one]
        for one in machine.cpu_nodes
    }
    demand = request.seat_demand
    found = []
    for numa_nodes in _candidate_sets(machine):
        cpus = machine.cpus_of(numa_nodes)
        left = sum(free[one] for one in numa_nodes if one in free) - demand.cpu_milli
        fits = (
            left >= 0 and bool(cpus) and sum(memory[one] for one in machine.nearest_mems(numa_nodes)) >= demand.memory
        )
        if fits and request.opt_in.cpus is not Cpus.SHARED:
            fits = len(_own(machine, occupancy, numa_nodes, request)) >= request.demand.whole_cpus
        room = 1.0 if left >= kin.room_milli else max(0.0, left / max(1, kin.room_milli))
        near = sum(pull[one] for one in numa_nodes) / len(numa_nodes)
        found.append(_Candidate(numa_nodes, fits, near, room, max(0.0, left / (1000 * len(cpus))) if cpus else 0.0))
    return found


def _candidate_sets(machine: Machine) -> Iterator[NumaSet]:
    """Each NUMA node with CPUs, then it and its nearest, and so on outward; each set once."""
    seen: set[int] = set()
    for home in machine.cpu_nodes:
        outward = sorted(machine.cpu_nodes, key=lambda other: (machine.distance(home, other), other))
        mask = 0
        for one in outward:
            mask |= 1 << one
            if mask not in seen:
                seen.add(mask)
                yield NumaSet(mask)


def _pull(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> dict[int, float]:
    """For each NUMA node the share of kin weight that would be local there, each peer discounted by its distance."""
    peers: list[tuple[NumaSet, float]] = []
    if kin.weights:
        peers = [
            (seat.numa_nodes, kin.weights[seat.pod])
            for seat in occupancy.seats.values()
            if seat.pod in kin.weights and seat.pod != request.pod
        ]
    else:
        peers = [(seat.numa_nodes, 1.0) for seat in occupancy.members(request.opt_in.group, but=request.pod)]
    total = sum(weight for _, weight in peers) + kin.elsewhere
    if not total:
        return {node.id: 0.0 for node in machine.numa_nodes}
    return {
        node.id: sum(
            weight * sum(machine.closeness(node.id, home) for home in homes) / len(homes)
            for homes, weight in peers
            if homes
        )
        / total
        for node in machine.numa_nodes
    }


def _chosen(
    occupancy: Occupancy, request: Request, kin: Kin, considered: list[_Candidate]
) -> tuple[_Candidate, Reason]:
    by_set = {one.numa_nodes: one for one in considered}
    best = min(considered, key=lambda one: one.rank)
    seat = occupancy.seats.get(request.seat_key)
    if seat is not None and seat.numa_nodes in by_set:
        mine = by_set[seat.numa_nodes]
        if mine.fits:
            return mine, Reason("its pod is there", "", f"NUMA node {mine.numa_nodes}")
    if kin.expected:
        offered = by_set.get(kin.expected)
        if offered is not None and offered.fits:
            return offered, Reason("promised to the scheduler", "", f"NUMA node {offered.numa_nodes}")
    if kin.planned:
        kept = by_set.get(kin.planned)
        if kept is not None and kept.fits:
            return kept, Reason("planned for its workload", "", f"NUMA node {kept.numa_nodes}")
    if best.kin > 0:
        return best, Reason("its kin are near", f"{best.kin:.2f}", f"NUMA node {best.numa_nodes}")
    return best, Reason("no kin here", "", f"the emptiest that fits is NUMA node {best.numa_nodes}")


def _granted(machine: Machine, occupancy: Occupancy, request: Request, best: _Candidate, why: Reason) -> Decision:
    reasons = [why]
    if request.opt_in.cpus is Cpus.SHARED:
        cpus, exclusive = _usable(machine, occupancy, best.numa_nodes, request), CpuSet()
    else:
        cpus = exclusive = _own(machine, occupancy, best.numa_nodes, request)
        reasons.append(Reason("own CPUs", str(len(cpus)), f"CPUs {cpus} are shared with nobody"))
    reasons.append(Reason("room left", f"{best.empty:.0%}", f"of NUMA node {best.numa_nodes}'s CPUs stay unrequested"))
    mems, memory_reason = _mems(machine, occupancy, request, best.numa_nodes)
    reasons.append(memory_reason)
    if request.demand.estimated:
        reasons.append(
            Reason(
                "estimated",
                "",
                f"{' and '.join(sorted(request.demand.estimated))} taken from the cgroup's settings",
            )
        )
    return Decision(
        best.numa_nodes, cpus, mems, exclusive, best.score, fits=True, reasons=tuple(reasons),
        updates=_shrunk(occupancy, exclusive),
    )  # fmt: skip


def _open(machine: Machine, request: Request, why: Reason) -> Decision:
    return Decision(machine.cpu_nodes, CpuSet(), NumaSet(), CpuSet(), 0.0, fits=False, reasons=(why,))


def _shortage(machine: Machine, request: Request) -> Reason:
    asked = f"{request.seat_demand.cpu_milli / 1000:g} CPUs and {request.seat_demand.memory >> 20} MiB"
    return Reason("fits nowhere", asked, f"left open over all {len(machine.cpu_nodes)} NUMA nodes")


def _usable(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet, request: Request) -> CpuSet:
    """The shared pool of these NUMA nodes as this container sees it."""
    mine = occupancy.holdings.get(request.container)
    taken = occupancy.exclusive - (mine.exclusive if mine else CpuSet())
    return machine.cpus_of(numa_nodes) - taken - occupancy.reserved


def _own(machine: Machine, occupancy: Occupancy, numa_nodes: NumaSet, request: Request) -> CpuSet:
    """CPUs to own: whole free cores first, then single siblings unless whole cores were asked for; empty when there are not enough."""
    free = _usable(machine, occupancy, numa_nodes, request)
    wanted = request.demand.whole_cpus
    cores = sorted({machine.core_of(cpu) & free for cpu in free}, key=lambda core: (-len(core), core.mask))
    whole = [core for core in cores if core == machine.core_of(core.lowest)]
    mask = 0
    for core in (
        whole if request.opt_in.cpus is Cpus.EXCLUSIVE_CORES else whole + [core for core in cores if core not in whole]
    ):
        for cpu in core:
            if mask.bit_count() >= wanted and request.opt_in.cpus is Cpus.EXCLUSIVE:
                break
            mask |= 1 << cpu
        if mask.bit_count() >= wanted:
            break
    return (
        CpuSet(mask)
        if mask.bit_count() >= wanted and _pool_survives(occupancy, free - CpuSet(mask), free)
        else CpuSet()
    )


def _pool_survives(occupancy: Occupancy, left: CpuSet, pool: CpuSet) -> bool:
    """No container that shares this pool may be left without a CPU."""
    sharing = (one.cpus for one in occupancy.holdings.values() if one.cpus and not one.exclusive)
    return all(bool(cpus - (pool - left)) for cpus in sharing)


def _shrunk(occupancy: Occupancy, exclusive: CpuSet) -> tuple[tuple[str, CpuSet], ...]:
    return tuple(
        (one.container, one.cpus - exclusive)
        for one in occupancy.holdings.values()
        if not one.exclusive and not one.cpus.isdisjoint(exclusive)
    )


def _free_memory(machine: Machine, occupancy: Occupancy, request: Request) -> dict[int, float]:
    """Bytes that may still be promised on each NUMA node: by account, and by what is really free where that is known."""
    load = occupancy.memory_load(machine, but=request.seat_key)
    free = {}
    for node in machine.numa_nodes:
        reserve = node.memory * MEMORY_RESERVE
        by_account = node.memory - load[node.id] - reserve
        free[node.id] = min(by_account, occupancy.free_memory.get(node.id, node.memory) - reserve)
    return free


def _mems(machine: Machine, occupancy: Occupancy, request: Request, numa_nodes: NumaSet) -> tuple[NumaSet, Reason]:
    home = machine.nearest_mems(numa_nodes)
    if not home:
        return NumaSet(), Reason("memory", "", "no NUMA node tells of memory: left open")
    if request.opt_in.memory is Memory.PREFER:
        return NumaSet(), Reason("memory prefer", "", "left open, first touch keeps it local")
    free = sum(_free_memory(machine, occupancy, request)[one] for one in home)
    demand = request.seat_demand
    asked = demand.memory if demand.memory_limit is None else max(demand.memory, demand.memory_limit)
    if request.opt_in.memory is Memory.BIND or free >= max(asked, 1):
        return home, Reason("memory free", f"{int(free) >> 20} MiB", f"bound to NUMA node {home}")
    return NumaSet(), Reason(
        "memory free", f"{int(free) >> 20} MiB", f"less than the {asked >> 20} MiB that it may use: left open"
    )
