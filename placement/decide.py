"""decide(): where a container goes on one machine, and why. The enforcer calls it to act, the extender to predict.

The order of doubts, each settled before the next is asked:
  1. does it fit?           CPU, memory, hugepages, own CPUs, with everybody else's requests kept (`room`);
  2. is it settled already? beside its pod's running containers, at its former seat, where the scheduler was promised,
                            where the plan keeps its seat, in this order while it fits there;
  3. how narrow is it?      a set of NUMA nodes is wider only when the demand is, off memory pressure, near devices;
  4. how near are its kin?  the share of kin weight that would be local, each peer by closeness (`kinship`);
  5. can the rest follow?   room for the expected rest of the group;
  6. how empty is it?       then the fewer seats, then the lowest id, so that equal inputs give equal answers.
"""

from __future__ import annotations

from dataclasses import replace

from placement import memory, own, pools
from placement.choice import Choice, choose, pinned
from placement.cpuset import CpuSet, NumaSet
from placement.decision import Decision, MemoryPolicy, Reason
from placement.demand import larger
from placement.kinship import peers_of
from placement.occupancy import Occupancy, Seat
from placement.own import CacheWeight
from placement.request import Kin, Request
from placement.room import Candidate, Room
from placement.survey import survey, takeable
from placement.topology import Machine
from placement.wishes import Cpus, Policy, Pool

__all__ = ["Decision", "Kin", "MemoryPolicy", "Reason", "Request", "decide"]


def decide(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> Decision:
    """The one function: same inputs, same answer, in both halves."""
    request = _whole_seat(occupancy, request)
    if request.opt_in.policy is Policy.NONE:
        return _open(machine, request, (Reason("policy none", "", "CPUs and memory are left open"),))
    room = survey(machine, occupancy, request, kin)
    choice = choose(room, kin)
    if choice.candidate is not None:
        home = choice.candidate.numa_nodes
        cpus = _own_cpus(room, home, kin) if request.wants_own else _pool(room, home)
        if cpus:
            return _granted(room, choice, choice.candidate, cpus)
    seat = occupancy.seats.get(request.seat_key) if pinned(room) else None
    return _open(machine, request, (*choice.reasons, _shortage(room)), admitted=choice.admitted, seat=seat)


def _whole_seat(occupancy: Occupancy, request: Request) -> Request:
    """With the pod's demand never less than what its seat is known to need: an estimate may know one container only."""
    seat = occupancy.seats.get(request.seat_key)
    if seat is None or not request.pod_demand.estimated or seat.demand == request.seat_demand:
        return request
    if request.seat_key != request.pod:
        return request
    return replace(request, pod_demand=larger(request.pod_demand, seat.demand))


def _granted(room: Room, choice: Choice, candidate: Candidate, cpus: CpuSet) -> Decision:
    machine, request = room.machine, room.request
    placed = memory.place(machine, room.occupancy, request, room.load, candidate.numa_nodes)
    decision = Decision(
        numa_nodes=candidate.numa_nodes,
        cpus=cpus,
        mems=placed.mems,
        exclusive=cpus if request.wants_own else CpuSet(),
        score=candidate.score if choice.admitted else 0.0,
        fits=True,
        reasons=(),
        preferred=choice.preferred,
        admitted=choice.admitted,
        memory_policy=placed.policy,
        parts=room.parts(candidate),
        seat_demand=request.seat_demand,
    )
    updates = _updates(room, decision)
    reasons = [*choice.reasons, *_own_reasons(decision, updates)]
    reasons.append(Reason("room left", f"{candidate.empty:.0%}", "of the CPUs there stay free"))
    reasons.append(placed.reason)
    if request.demand.estimated:
        what = " and ".join(sorted(request.demand.estimated))
        reasons.append(Reason("estimated", "", f"{what} taken from the cgroup's settings"))
    return replace(decision, reasons=tuple(reasons), updates=updates)


def _open(
    machine: Machine, request: Request, why: tuple[Reason, ...], *, admitted: bool = True, seat: Seat | None = None
) -> Decision:
    """Nothing is set. seat: a running pod's, which stays what it is."""
    return Decision(
        numa_nodes=seat.numa_nodes if seat is not None else machine.cpu_nodes,
        cpus=CpuSet(),
        mems=NumaSet(),
        exclusive=CpuSet(),
        score=0.0,
        fits=False,
        reasons=why,
        preferred=False,
        admitted=admitted,
        parts=seat.parts if seat is not None else (),
        seat_demand=request.seat_demand,
    )


def _shortage(room: Room) -> Reason:
    demand = room.request.seat_demand
    asked = f"{demand.cpu_milli / 1000:g} CPUs and {demand.memory >> 20} MiB"
    return Reason("fits nowhere", asked, f"left open over all {len(room.machine.cpu_nodes)} NUMA nodes")


def _pool(room: Room, numa_nodes: NumaSet) -> CpuSet:
    if room.request.pool is not Pool.SHARED:
        return pools.pool_of(room.machine, room.occupancy, room.request.pool, numa_nodes)
    mask = 0
    for one in numa_nodes:
        mask |= room.free[one]
    return CpuSet(mask)


def _own_cpus(room: Room, numa_nodes: NumaSet, kin: Kin) -> CpuSet:
    """What it has already while that will do, else the best there is."""
    machine, request = room.machine, room.request
    whole_cores = request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    mine = room.occupancy.holdings.get(request.container)
    wanted = request.demand.whole_cpus
    if mine is not None and mine.exclusive <= machine.cpus_of(numa_nodes) - room.occupancy.reserved:
        if len(mine.exclusive) == wanted and not whole_cores:
            return mine.exclusive
        if whole_cores and _just_cores(machine, mine.exclusive, wanted):
            return mine.exclusive
    free = {one: room.free[one] for one in numa_nodes}
    spare = takeable(machine, room.occupancy, request, free, room.cpu)
    return own.pick(machine, spare, wanted, _cache_weight(room, kin), whole_cores=whole_cores)


def _just_cores(machine: Machine, cpus: CpuSet, wanted: int) -> bool:
    """Whether these are whole cores, and none too many."""
    cores = {machine.core_of(cpu) for cpu in cpus}
    whole = all(core <= cpus for core in cores)
    return whole and len(cpus) >= wanted > len(cpus) - min((len(core) for core in cores), default=0)


def _cache_weight(room: Room, kin: Kin) -> CacheWeight:
    """The kin weight that has its own CPUs within a cache."""
    occupancy = room.occupancy
    owned = [
        (own_mask, weight)
        for seat, weight in peers_of(occupancy, room.request, kin)
        if (own_mask := occupancy.own_of(seat.key))
    ]

    def weight_of(cache: int) -> float:
        return sum(weight * (mask & cache).bit_count() / mask.bit_count() for mask, weight in owned)

    return weight_of


def _updates(room: Room, decision: Decision) -> tuple[tuple[str, CpuSet], ...]:
    """Whose CPUs change with this decision: looked for only where own CPUs or the reclaimed pool are in play."""
    occupancy, request = room.occupancy, room.request
    mine = occupancy.holdings.get(request.container)
    before = mine.exclusive if mine is not None else CpuSet()
    if decision.exclusive == before and not occupancy.directory.special:
        return ()
    after = occupancy.changed(
        seats={request.seat_key: decision.seat(request)},
        holdings={request.container: decision.holding(request)},
        checked=False,
    )
    return tuple(one for one in pools.due(room.machine, after) if one[0] != request.container)


def _own_reasons(decision: Decision, updates: tuple[tuple[str, CpuSet], ...]) -> list[Reason]:
    if not decision.exclusive:
        return []
    effect = f"CPUs {decision.exclusive} are shared with nobody"
    moved = f", {len(updates)} containers leave them" if updates else ""
    return [Reason("own CPUs", str(len(decision.exclusive)), effect + moved)]
