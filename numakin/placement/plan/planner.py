"""How a plan is made: the known workloads' graph is partitioned over a machine's NUMA nodes.

Placing each newcomer beside the heaviest peer already there would give early arrivals the wrong slots. So slots are
settled ahead of time, off the hook's path, one for each expected replica. Members that run stay where they are: the
plan is made around them. A new plan must gain `pays` of all traffic over the old one, or the old one's slots are kept:
only who is new to it is given a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.partition import PartitionState
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.plan.problem import Weights, Workload, problem_of
from numakin.placement.plan.search import ANEW, climbed, solve, solve_briefly
from numakin.placement.state.occupancy import Occupancy

PAYS = 0.001
"""Share of all traffic that a new plan must gain over the old one's slots. Next to nothing: a vacant slot moves at no
cost, and what is not gained by one plan adds up with the next one's, since those who come meanwhile stay.
"""

EFFORT = 40
"""Steps of the search for each replica and NUMA node: on 16 NUMA nodes with 250 members some 3 s of one CPU, on 4 with
60 a tenth of that.
"""

AT_ONCE = 0
"""The effort for a pod that is seen now and has no slot, in some tens of milliseconds: from the old plan by climbing
alone, or a brief search where there are other numbers of replicas than it was made for.
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
    """The plan for these workloads. members: the workload of each reservation key. Same arguments, same plan."""
    ordered = sorted(workloads, key=lambda workload: workload.name)
    problem = problem_of(machine, occupancy, members, ordered, weights)
    if previous is None or not previous.slots:
        first = solve(problem, effort=effort) if effort else solve_briefly(problem)
        return _as_plan(machine, occupancy, ordered, first)
    old = [_counts(machine, previous, workload.name) for workload in ordered]
    kept = PartitionState.of(problem, old)
    if effort:
        best = solve(problem, starts=[old], effort=effort, heats=ANEW)
    elif any(sum(row) != count for row, count in zip(old, problem.counts, strict=True)):
        best = solve_briefly(problem, starts=[old])
    else:
        best = climbed(kept)
    return _as_plan(machine, occupancy, ordered, kept_or_replaced(kept, best, pays))


def kept_or_replaced(kept: PartitionState, best: PartitionState, pays: float) -> PartitionState:
    """The new plan's state where it gains so much over the one that keeps the old plan's slots, else the latter."""
    return best if best.score() - kept.score() > pays * best.scale else kept


def _counts(machine: Machine, plan: Plan, name: str) -> list[int]:
    planned = {slots.numa_nodes.lowest: slots.count for slots in plan.slots.get(name, ())}
    return [planned.get(cpu_node, 0) for cpu_node in machine.cpu_nodes]


def _as_plan(machine: Machine, occupancy: Occupancy, workloads: Sequence[Workload], state: PartitionState) -> Plan:
    nodes = list(machine.cpu_nodes)
    slots: dict[str, tuple[PlannedSlots, ...]] = {}
    pulls: dict[str, dict[int, float]] = {}
    for kind, workload in enumerate(workloads):
        drawn, counts = state.attraction[kind], state.counts[kind]
        ranked = sorted((bin_ for bin_ in range(len(nodes)) if counts[bin_]), key=lambda bin_: (-drawn[bin_], bin_))
        slots[workload.name] = tuple(PlannedSlots(NumaSet.of((nodes[bin_],)), counts[bin_]) for bin_ in ranked)
        pulls[workload.name] = {node: drawn[bin_] for bin_, node in enumerate(nodes)}
    demands = {workload.name: workload.demand for workload in workloads}
    return Plan(slots, pulls, demands, state.locality(), occupancy.generation)
