"""Where each known workload's replicas should live on a machine, settled ahead of their arrival.

Whoever places each newcomer beside the heaviest peer already there gives early arrivals the wrong seats. So the known
workloads' graph is partitioned over the machine's NUMA nodes ahead of time, off the hook's path, with a seat for each
expected replica. Members that run stay where they are: the plan is made around them. A new plan must gain `pays` of
all traffic over the old one, or the old one's seats are kept: only newcomers to it are given new ones.

`Plan.seat` then answers for a newcomer, given who sits where now, what goes into `Kin.planned`:
  1. a vacant seat of its workload, the best first;
  2. a replica more than expected: the NUMA node that draws it most among those with room that is not kept for others;
  3. a workload that the plan does not know: where the most kin weight sits, likewise among the room that is not kept;
  4. none of these: empty, and decide() does what it does without a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placement.cpuset import NumaSet
from placement.demand import Demand
from placement.occupancy import Occupancy
from placement.partition import Problem, State
from placement.search import ANEW, solve
from placement.topology import Machine

MEMORY_RESERVE = 0.05
"""Share of a NUMA node's memory that is planned for nobody, as decide() leaves it free."""

REMOTE_SHARE = 0.1
"""What traffic to a neighbour at the local distance would count, against 1 at home; falls with the SLIT distance. Small,
so that distances settle where the parts of a split group go, and never split one.
"""

PAYS = 0.02
"""Share of all traffic that a new plan must gain over the old one's seats."""

EFFORT = 40
"""Steps of the search for each replica and NUMA node: on 16 NUMA nodes with 250 members some 3 s of one CPU, on 4 with
60 a tenth of that.
"""

UNKNOWN: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class Workload:
    """What is expected on the machine.

    replicas: in all, those that run there already included. demand: of one replica.
    """

    name: str
    demand: Demand
    replicas: int


@dataclass(frozen=True, slots=True)
class PlannedSeats:
    """So many replicas on these NUMA nodes."""

    numa_nodes: NumaSet
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """seats: by workload, the best first. pulls: what each NUMA node exchanges with one replica of the workload, once
    all are seated as planned.

    locality: share of the known traffic that the plan keeps inside NUMA nodes.
    """

    seats: Mapping[str, tuple[PlannedSeats, ...]] = field(default_factory=dict, hash=False)
    pulls: Mapping[str, Mapping[int, float]] = field(default_factory=dict, hash=False)
    demands: Mapping[str, Demand] = field(default_factory=dict, hash=False)
    locality: float = 0.0

    def seat(
        self,
        machine: Machine,
        occupancy: Occupancy,
        members: Mapping[str, str],
        *,
        workload: str,
        demand: Demand,
        weights: Mapping[str, float] = UNKNOWN,
    ) -> NumaSet:
        """Where a newcomer of this workload should go; empty: the plan has no advice.

        members: the workload of each seat key on this machine. weights: kin weight by pod, for a workload that the
        plan does not know.
        """
        room = _room(machine, occupancy)
        vacant = dict(self._vacant(occupancy, members))
        for one in vacant.get(workload, ()):
            if _fits(demand, room[one.numa_nodes.lowest]):
                return one.numa_nodes
        for name, seats in vacant.items():
            for one in seats if name != workload else ():
                kept, left = self.demands[name], room[one.numa_nodes.lowest]
                room[one.numa_nodes.lowest] = (
                    left[0] - one.count * kept.cpu_milli,
                    left[1] - one.count * kept.memory,
                )
        pulls = self.pulls.get(workload) or _live_pulls(occupancy, weights)
        open_to_all = [one for one in room if _fits(demand, room[one])]
        if not open_to_all or not (pulls or vacant):
            return NumaSet()
        return NumaSet.of(
            (
                max(
                    open_to_all,
                    key=lambda one: (pulls.get(one, 0.0), room[one][0], -one),
                ),
            )
        )

    def _vacant(self, occupancy: Occupancy, members: Mapping[str, str]) -> Iterator[tuple[str, list[PlannedSeats]]]:
        """What is planned less who sits there, and no more of a workload than is still to come."""
        sitting = Counter((members[key], seat.numa_nodes) for key, seat in occupancy.seats.items() if key in members)
        present = Counter(members[key] for key in occupancy.seats if key in members)
        for name, seats in self.seats.items():
            coming = sum(one.count for one in seats) - present[name]
            found = []
            for one in seats:
                count = min(coming, one.count - sitting[name, one.numa_nodes])
                if count > 0:
                    found.append(PlannedSeats(one.numa_nodes, count))
                    coming -= count
            if found:
                yield name, found


def make_plan(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Mapping[tuple[str, str], float],
    *,
    previous: Plan | None = None,
    pays: float = PAYS,
    effort: int = EFFORT,
) -> Plan:
    """weights: of each pair of workloads in all (`Graph.weights`), taken as spread evenly over their replicas.
    members: as in `Plan.seat`.

    Same arguments, same plan.
    """
    ordered = sorted(workloads, key=lambda one: one.name)
    problem = _problem(machine, occupancy, members, ordered, weights)
    if previous is None or not previous.seats:
        return _as_plan(machine, ordered, solve(problem, effort=effort))
    old = [_counts(machine, previous, one.name) for one in ordered]
    kept = State.of(problem, old)
    best = solve(problem, starts=[old], effort=effort, heats=ANEW)
    pays_off = best.score() - kept.score() > pays * best.scale
    return _as_plan(machine, ordered, best if pays_off else kept)


def _problem(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Mapping[tuple[str, str], float],
) -> Problem:
    nodes = list(machine.cpu_nodes)
    index = {one.name: kind for kind, one in enumerate(workloads)}
    bins = {NumaSet.of((one,)): bin_ for bin_, one in enumerate(nodes)}
    pinned = [[0] * len(nodes) for _ in workloads]
    seated = set()
    wide: Counter[str] = Counter()
    for key, name in members.items():
        seat = occupancy.seats.get(key)
        if seat is None or name not in index:
            continue
        bin_ = bins.get(seat.numa_nodes)
        if bin_ is None:
            wide[name] += 1
        else:
            pinned[index[name]][bin_] += 1
            seated.add(key)
    # A replica over several NUMA nodes has its share of each taken away from it, and needs no seat.
    counts = [max(one.replicas - wide[one.name], sum(row)) for one, row in zip(workloads, pinned, strict=True)]
    foreign = replace(occupancy, seats={key: seat for key, seat in occupancy.seats.items() if key not in seated})
    room = _room(machine, foreign)
    return Problem(
        sizes=[(one.demand.cpu_milli, one.demand.memory) for one in workloads],
        counts=counts,
        pulls=_pulls(index, workloads, weights),
        capacity=[room[one] for one in nodes],
        nearness=[[1.0 if a == b else REMOTE_SHARE * machine.closeness(a, b) for b in nodes] for a in nodes],
        pinned=pinned,
    )


def _pulls(
    index: Mapping[str, int],
    workloads: Sequence[Workload],
    weights: Mapping[tuple[str, str], float],
) -> list[dict[int, float]]:
    """Weight of each pair of replicas: the workloads' weight over the number of pairs."""
    pulls: list[dict[int, float]] = [{} for _ in workloads]
    for (a, b), weight in weights.items():
        if a not in index or b not in index or weight <= 0:
            continue
        one, other = index[a], index[b]
        mine, theirs = (
            max(1, workloads[one].replicas),
            max(1, workloads[other].replicas),
        )
        pairs = mine * theirs if one != other else max(1, mine * (mine - 1) // 2)
        for here, there in {(one, other), (other, one)}:
            pulls[here][there] = pulls[here].get(there, 0.0) + weight / pairs
    return pulls


def _room(machine: Machine, occupancy: Occupancy) -> dict[int, tuple[int, int]]:
    """CPU (thousandths) and memory (bytes) that nobody has, by NUMA node with CPUs."""
    cpu, memory = occupancy.cpu_load(machine), occupancy.memory_load(machine)
    room = {}
    for one in machine.cpu_nodes:
        node = machine.node(one)
        mems = machine.nearest_mems(NumaSet.of((one,)))
        free = sum(machine.node(mem).memory * (1 - MEMORY_RESERVE) - memory[mem] for mem in mems)
        room[one] = (
            int(len(node.cpus - occupancy.reserved) * 1000 - cpu[one]),
            int(free),
        )
    return room


def _fits(demand: Demand, room: tuple[int, int]) -> bool:
    return demand.cpu_milli <= room[0] and demand.memory <= room[1]


def _live_pulls(occupancy: Occupancy, weights: Mapping[str, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for seat in occupancy.seats.values():
        if len(seat.numa_nodes) == 1 and seat.pod in weights:
            one = seat.numa_nodes.lowest
            found[one] = found.get(one, 0.0) + weights[seat.pod]
    return found


def _counts(machine: Machine, plan: Plan, name: str) -> list[int]:
    planned = {one.numa_nodes.lowest: one.count for one in plan.seats.get(name, ())}
    return [planned.get(one, 0) for one in machine.cpu_nodes]


def _as_plan(machine: Machine, workloads: Sequence[Workload], state: State) -> Plan:
    nodes = list(machine.cpu_nodes)
    seats: dict[str, tuple[PlannedSeats, ...]] = {}
    pulls: dict[str, dict[int, float]] = {}
    for kind, one in enumerate(workloads):
        drawn = state.attraction[kind]
        ranked = sorted(
            (bin_ for bin_ in range(len(nodes)) if state.counts[kind][bin_]),
            key=lambda bin_: (-drawn[bin_], bin_),
        )
        seats[one.name] = tuple(PlannedSeats(NumaSet.of((nodes[bin_],)), state.counts[kind][bin_]) for bin_ in ranked)
        pulls[one.name] = {node: drawn[bin_] for bin_, node in enumerate(nodes) if drawn[bin_] > 0}
    return Plan(seats, pulls, {one.name: one.demand for one in workloads}, state.locality())
