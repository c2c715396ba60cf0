"""The slot that a group's plan keeps for a newcomer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from extender.planning.group_planner import Plans
from extender.scoring import devices
from extender.scoring.predict import Wanted
from extender.state.columns.cells import Cells
from extender.state.columns.free_room import NumaPlace
from extender.state.node_view import NodeView
from extender.state.workload_locations import WorkloadLocations
from extender.traffic.known import ClusterTraffic
from numakin.placement.decide.request import NO_KIN
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.allocations import as_one

EPSILON = 1e-9
"""Of weights that are sums."""


@dataclass(frozen=True, slots=True)
class VacantSlots:
    """The plans, and where all pods are by now. view: of a node; None where it is not known."""

    plans: Plans
    known: ClusterTraffic
    locations: WorkloadLocations
    view: Callable[[str], NodeView | None]

    def vacant(self, want: Wanted, nodes: Collection[str]) -> NumaPlace | None:
        """The best planned slot of the pod's workload on these nodes that no pod has and that it fits on.

        None where its kin draw it more to another place with room: then the plan is of members that have left since,
        and the pod follows its kin. A slot draws by the kin that are there and by those that are planned there.
        """
        places = self.plans.get(want.pod.workload, ())
        if not places or not want.alone_decides:
            return None
        taken, offered = self._there(want.pod.workload, but=want.pod.uid), frozenset(nodes)
        for place, count in places:
            there = self.view(place.node) if place.node in offered else None
            if there is not None and taken[place] < count and _fits(want, there, place.numa_node):
                return None if self._drawn_elsewhere(want, place, offered) else place
        return None

    def _drawn_elsewhere(self, want: Wanted, slot: NumaPlace, offered: Collection[str]) -> bool:
        present: dict[NumaPlace, float] = {}
        drawn = 0.0
        for peer, weight in self.known.peers.get(want.pod.workload, {}).items():
            there = self._there(peer)
            for place, count in there.items():
                present[place] = present.get(place, 0.0) + weight * count
            drawn += weight * max(there[slot], self._planned(peer, slot))
        better = (place for place, here in present.items() if here > drawn + EPSILON and place.node in offered)
        return any(place != slot and self._has_room(want, place) for place in better)

    def _has_room(self, want: Wanted, place: NumaPlace) -> bool:
        """Beside those that are planned there and have not come yet."""
        view, known = self.view(place.node), self.known
        promised = 0
        for name in known.members.get(known.group_of(want.pod.workload), ()):
            coming = self._planned(name, place) - self._there(name)[place] if name in self.plans else 0
            if coming > 0 and name != want.pod.workload and name in known.demands:
                promised += coming * known.demands[name].expected_milli
        return view is not None and _fits(want, view, place.numa_node, promised)

    def _planned(self, workload: str, at: NumaPlace) -> int:
        return sum(count for place, count in self.plans.get(workload, ()) if place == at)

    def _there(self, workload: str, but: str = "") -> Counter[NumaPlace]:
        """How many pods of the workload are on each NUMA node, without the pod `but`."""
        found: Counter[NumaPlace] = Counter()
        for uid, node in self.locations.of(workload).items():
            view = self.view(node)
            containers = view.occupancy.members_of(uid) if view is not None and uid != but else ()
            if containers and len(home := as_one(containers).numa_nodes) == 1:
                found[NumaPlace(node, home.lowest)] += 1
        return found


def _fits(want: Wanted, view: NodeView, numa_node: int, promised: int = 0) -> bool:
    """Where the machine is special, decide() settles it. A slot on a hot NUMA node is for none now. promised:
    millicores there that others are planned for.
    """
    if view.table is None:
        return True
    if devices.lacking(view.occupancy.live, want.pod, NO_KIN, NumaSet.of((numa_node,))):
        return False
    demand = want.whole[0].reservation_demand
    there = view.table[:, view.table[0] == numa_node]
    if not there.size:
        return False
    columns = Cells(*there[:, 0])
    return bool(
        not columns.hot
        and columns.free - promised >= demand.cpu_milli
        and min(columns.account, columns.real) >= demand.memory
    )
