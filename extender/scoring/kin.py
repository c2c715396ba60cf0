"""Who a pod's kin are on each node, by what is known best.

  1. What traffic taught of this very pod, or else of its workload: a new replica is expected to talk with every replica
     of its workload's peers alike.
  2. Where no such peer is anywhere yet: the members of its group, all alike. A group that was found from traffic is
     sent to the enforcer pod by pod, since it knows only the groups that pods name; and so is one whose object gives
     workloads priorities, by which all weights are multiplied.

`planned` is `steering`'s to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from extender.scoring.predict import Wanted
from extender.state.group_spec import NOTHING, GroupSpec
from extender.state.kins import Kins
from extender.state.node_index import changed_groups
from extender.state.node_view import NodeView
from extender.state.workload_locations import WorkloadLocations
from extender.traffic.known import ClusterTraffic
from numakin.placement.decide.decide import Kin
from numakin.placement.model.demand import bounded
from numakin.placement.traffic.affinity import with_replicas


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


def kins(
    want: Wanted,
    known: ClusterTraffic,
    groups: GroupMembers,
    locations: WorkloadLocations,
    *,
    spec: GroupSpec = NOTHING,
    members: Iterable[str] = (),
    waiting: int = 0,
    told: int = 0,
) -> Kins:
    """As each node's enforcer should weigh them, with those on other nodes as `elsewhere`.

    spec: what the pod's group asks for. members: the uids of a named group's, where it gives priorities.
    waiting: millicores of the named group's members that have no node yet. told: how many it will be, as other
    controllers say, 0: they do not.
    """
    weights = (
        _of_pod(want, known, locations)
        or _of_workload(want, known, locations)
        or _of_found_group(want, known, locations)
    )
    if spec.priorities:
        alike = {uid: 1.0 for uid in members if uid != want.pod.uid and locations.node(uid) is not None}
        weights = spec.weighed(weights or alike, locations)
    if not weights:
        return member_kins(want, groups, waiting, told)
    on_node: dict[str, dict[str, float]] = defaultdict(dict)
    for uid in sorted(weights):
        on_node[locations.node(uid) or ""][uid] = weights[uid]
    total = sum(weights.values())
    present = groups.total(want.group) if want.group else len(_members(want, known, locations))
    rest = room(want, present, waiting, told)
    near = {node: Kin(there, max(0.0, total - sum(there.values())), room_milli=rest) for node, there in on_node.items()}
    return Kins(Kin(elsewhere=total, room_milli=rest), near)


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


def _of_pod(want: Wanted, known: ClusterTraffic, locations: WorkloadLocations) -> dict[str, float]:
    partners = known.partners.get(want.pod.uid, {})
    return {uid: weight for uid, weight in partners.items() if weight > 0 and locations.node(uid) is not None}


def _of_workload(want: Wanted, known: ClusterTraffic, locations: WorkloadLocations) -> dict[str, float]:
    return with_replicas(known.peers.get(want.pod.workload, {}), locations.of, but=want.pod.uid)


def _of_found_group(want: Wanted, known: ClusterTraffic, locations: WorkloadLocations) -> dict[str, float]:
    return {} if want.group else dict.fromkeys(_members(want, known, locations), 1.0)


def _members(want: Wanted, known: ClusterTraffic, locations: WorkloadLocations) -> list[str]:
    """The other pods of the group that was found for the pod's workload."""
    workloads = known.members.get(known.group_of(want.pod.workload), ())
    return [uid for workload in workloads for uid in locations.of(workload) if uid != want.pod.uid]
