"""Where each known workload's replicas should live on a machine, settled ahead of their arrival.

Whoever places each newcomer beside the heaviest peer already there gives early arrivals the wrong seats. So the known
workloads' graph is partitioned over the machine's NUMA nodes ahead of time, off the hook's path, with a seat for each
expected replica. Members that run stay where they are: the plan is made around them. A new plan must gain `pays` of
all traffic over the old one, or the old one's seats are kept: only who is new to it is given a new one.

`Plan.seat` then answers for a newcomer, given who sits where now, what goes into `Kin.planned`:
  1. a vacant seat of its workload, the best first;
  2. for a replica more than expected, the NUMA node that draws it most, among those with room kept for nobody;
  3. for a workload that the plan does not know, the one where most of its kin sit, among the same;
  4. else nothing, and decide() does what it does without a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.cpuset import NumaSet
from placement.demand import Demand
from placement.known import Room, Sitting, Weights, Workload, fits, free_room, problem_of, sitting
from placement.occupancy import Occupancy
from placement.partition import State
from placement.search import ANEW, climbed, solve
from placement.topology import Machine

PAYS = 0.005
"""Share of all traffic that a new plan must gain over the old one's seats. Little: a vacant seat moves at no cost but
that of a promise that may be out already.
"""

EFFORT = 40
"""Steps of the search for each replica and NUMA node: on 16 NUMA nodes with 250 members some 3 s of one CPU, on 4 with
60 a tenth of that.
"""

AT_ONCE = 0
"""The effort for a pod that is seen now and has no seat: from the old plan by climbing alone, in some tens of
milliseconds.
"""

UNKNOWN: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class PlannedSeats:
    """So many replicas on these NUMA nodes."""

    numa_nodes: NumaSet
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Seats by workload, the best first.

    pulls: by workload, what each NUMA node exchanges with one replica of it once all are seated as planned. demands: of
    one replica. locality: share of the known traffic that the plan keeps inside NUMA nodes.
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
        if not self.seats:
            return NumaSet()
        room = free_room(machine, occupancy)
        vacant = self.vacant(sitting(occupancy, members))
        for one in vacant.get(workload, ()):
            if fits(demand, room[one.numa_nodes.lowest]):
                return one.numa_nodes
        kept = self._kept(vacant, workload)
        room = {one: (cpu - kept[one][0], memory - kept[one][1]) for one, (cpu, memory) in room.items()}
        open_to_all = [one for one in room if fits(demand, room[one])]
        pulls = self.pulls.get(workload) or _live_pulls(occupancy, weights)
        best = max(open_to_all, key=lambda one: (pulls.get(one, 0.0), room[one][0], -one), default=None)
        return NumaSet() if best is None else NumaSet.of((best,))

    def vacant(self, there: Sitting) -> dict[str, tuple[PlannedSeats, ...]]:
        """What is planned less who sits there, and no more of a workload than is still to come."""
        present: dict[str, int] = dict(there.wide)
        for (name, _), keys in there.keys.items():
            present[name] = present.get(name, 0) + len(keys)
        found = {}
        for name, seats in self.seats.items():
            coming = sum(one.count for one in seats) - present.get(name, 0)
            left = []
            for one in seats:
                free = min(coming, one.count - len(there.keys.get((name, one.numa_nodes.lowest), ())))
                if free > 0:
                    left.append(PlannedSeats(one.numa_nodes, free))
                    coming -= free
            if left:
                found[name] = tuple(left)
        return found

    def _kept(self, vacant: Mapping[str, Sequence[PlannedSeats]], but: str) -> dict[int, Room]:
        """Room of the vacant seats of all workloads but one."""
        kept = {one: (0, 0) for pulls in self.pulls.values() for one in pulls}
        for name, seats in vacant.items():
            if name == but:
                continue
            for one in seats:
                node, demand = one.numa_nodes.lowest, self.demands[name]
                cpu, memory = kept[node]
                kept[node] = (cpu + one.count * demand.cpu_milli, memory + one.count * demand.memory)
        return kept


def make_plan(
    machine: Machine,
    occupancy: Occupancy,
    members: Mapping[str, str],
    workloads: Sequence[Workload],
    weights: Weights,
    *,
    previous: Plan | None = None,
    pays: float = PAYS,
    effort: int = EFFORT,
) -> Plan:
    """The plan for these workloads. members: the workload of each seat key. Same arguments, same plan."""
    ordered = sorted(workloads, key=lambda one: one.name)
    problem = problem_of(machine, occupancy, members, ordered, weights)
    if previous is None or not previous.seats:
        return _as_plan(machine, ordered, solve(problem, effort=effort))
    old = [_counts(machine, previous, one.name) for one in ordered]
    kept = State.of(problem, old)
    best = solve(problem, starts=[old], effort=effort, heats=ANEW) if effort else climbed(kept)
    pays_off = best.score() - kept.score() > pays * best.scale
    return _as_plan(machine, ordered, best if pays_off else kept)


def _counts(machine: Machine, plan: Plan, name: str) -> list[int]:
    planned = {one.numa_nodes.lowest: one.count for one in plan.seats.get(name, ())}
    return [planned.get(one, 0) for one in machine.cpu_nodes]


def _as_plan(machine: Machine, workloads: Sequence[Workload], state: State) -> Plan:
    nodes = list(machine.cpu_nodes)
    seats: dict[str, tuple[PlannedSeats, ...]] = {}
    pulls: dict[str, dict[int, float]] = {}
    for kind, one in enumerate(workloads):
        drawn, counts = state.attraction[kind], state.counts[kind]
        ranked = sorted((bin_ for bin_ in range(len(nodes)) if counts[bin_]), key=lambda bin_: (-drawn[bin_], bin_))
        seats[one.name] = tuple(PlannedSeats(NumaSet.of((nodes[bin_],)), counts[bin_]) for bin_ in ranked)
        pulls[one.name] = {node: drawn[bin_] for bin_, node in enumerate(nodes)}
    return Plan(seats, pulls, {one.name: one.demand for one in workloads}, state.locality())


def _live_pulls(occupancy: Occupancy, weights: Mapping[str, float]) -> dict[int, float]:
    """Kin weight on each NUMA node."""
    found: dict[int, float] = {}
    for seat in occupancy.seats.values():
        if len(seat.numa_nodes) == 1 and seat.pod in weights:
            one = seat.numa_nodes.lowest
            found[one] = found.get(one, 0.0) + weights[seat.pod]
    return found
