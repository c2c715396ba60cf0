"""How a plan is made: the known workloads' graph is partitioned over a machine's NUMA nodes.

Whoever places each newcomer beside the heaviest peer already there gives early arrivals the wrong seats. So seats are
settled ahead of time, off the hook's path, one for each expected replica. Members that run stay where they are: the
plan is made around them. A new plan must gain `pays` of all traffic over the old one, or the old one's seats are kept:
only who is new to it is given a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placement.cpuset import NumaSet
from placement.known import Weights, Workload, problem_of
from placement.occupancy import Occupancy
from placement.partition import State
from placement.plan import Plan, PlannedSeats
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
