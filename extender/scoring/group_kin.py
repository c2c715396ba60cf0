"""A pod's kin where nothing was learned: every member of its group alike, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping

from extender.scoring.predict import Wanted
from extender.state.kins import Kins
from extender.state.node_index import changed_groups
from extender.state.node_view import NodeView
from numakin.placement.decide.decide import Kin
from numakin.placement.model.demand import bounded


class GroupMembers:
    """group -> node -> pods there, kept up to date as views change. Under the cluster's lock."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, int]] = {}
        self._totals: dict[str, int] = {}

    def changed(self, node: str, before: NodeView | None, after: NodeView | None) -> None:
        for group, old, new in changed_groups(before.occupancy if before else None, after.occupancy if after else None):
            if old != new:
                self._add(group, node, new, new - old)

    def total(self, group: str) -> int:
        return self._totals.get(group, 0)

    def nodes(self, group: str) -> Mapping[str, int]:
        """Where the group's pods are: node -> how many."""
        return self._pods.get(group, {})

    def names(self) -> list[str]:
        return sorted(self._pods)

    def _add(self, group: str, node: str, pods: int, difference: int) -> None:
        nodes = self._pods.setdefault(group, {})
        if pods:
            nodes[node] = pods
        else:
            nodes.pop(node, None)
        self._totals[group] = self._totals.get(group, 0) + difference
        if not nodes:
            del self._pods[group], self._totals[group]


def member_kins(want: Wanted, groups: GroupMembers, waiting: int, told: int = 0) -> Kins:
    """The kin as each node's enforcer should weigh them, with the members on other nodes as `elsewhere`. waiting, told:
    as in `room`.
    """
    group = want.group
    total = groups.total(group) if group else 0
    rest = room(want, total, waiting, told)
    on_node = groups.nodes(group)
    # A group may be on hundreds of nodes, most of which have as many of its members: they share one value.
    alike = {members: Kin(elsewhere=float(total - members), room_milli=rest) for members in {*on_node.values()}}
    near = {node: alike[members] for node, members in on_node.items()}
    return Kins(Kin(elsewhere=float(total), room_milli=rest), near)


def room(want: Wanted, members: int, waiting: int, told: int = 0) -> int:
    """CPU that the group's members still to come will ask for, in millicores: each as much as this one where the size
    was said, else what those ask for that were created and wait for a node (waiting), or more where another controller
    says how many there will be (told).
    """
    if not want.opt_in.size:
        return bounded(max(waiting, (told - members - 1) * want.whole[0].pod_demand.expected_milli))
    # A complete group is sent as one thousandth: 0 would mean "not set", and the node would count by itself.
    return bounded(max(1, (want.opt_in.size - members - 1) * want.whole[0].pod_demand.expected_milli))
