"""The slot that a group's plan keeps for a newcomer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from extender.planning.group_plan import NumaPlace
from extender.planning.group_planner import Plans
from extender.scoring.predict import Wanted
from extender.state.columns.cells import Cells
from extender.state.node_view import NodeView
from extender.state.workload_locations import WorkloadLocations
from numakin.placement.state.allocations import as_one


def vacant(
    want: Wanted,
    plans: Plans,
    locations: WorkloadLocations,
    view: Callable[[str], NodeView | None],
    nodes: Collection[str],
) -> NumaPlace | None:
    """The best planned slot of the pod's workload on these nodes that nobody has and that it fits on."""
    places = plans.get(want.pod.workload, ())
    if not places or not want.alone_decides:
        return None
    taken, offered = _taken(want, locations, view), frozenset(nodes)
    for place, count in places:
        there = view(place.node) if place.node in offered else None
        if there is not None and taken[place] < count and _fits(want, there, place.numa_node):
            return place
    return None


def _taken(want: Wanted, locations: WorkloadLocations, view: Callable[[str], NodeView | None]) -> Counter[NumaPlace]:
    """Where the other replicas of the pod's workload are."""
    taken: Counter[NumaPlace] = Counter()
    for uid, node in locations.of(want.pod.workload).items():
        there = view(node)
        containers = there.occupancy.members_of(uid) if there is not None and uid != want.pod.uid else ()
        if containers and len(home := as_one(containers).numa_nodes) == 1:
            taken[NumaPlace(node, home.lowest)] += 1
    return taken


def _fits(want: Wanted, view: NodeView, numa_node: int) -> bool:
    """Where the machine is special, decide() settles it. A slot on a hot NUMA node is for nobody now."""
    if view.table is None:
        return True
    demand = want.whole[0].reservation_demand
    there = view.table[:, view.table[0] == numa_node]
    if not there.size:
        return False
    columns = Cells(*there[:, 0])
    return bool(
        not columns.hot and columns.free >= demand.cpu_milli and min(columns.account, columns.real) >= demand.memory
    )
