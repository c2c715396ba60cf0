"""The groups whose pods are on several nodes, as they are planned together again: what is taken of the cluster under
its lock, and planned outside of it.

A group whose pods are coming or going is left for a later search. A pod may go elsewhere where another one is created
for it: by a controller that is not bound to a node and does not count it as failed, without devices, and where it says
no more of where it may run than terms of nodes, which are held to. Each step is asked of decide(), as the node's
enforcer would answer: the pod's own policy, its exclusive CPUs, hugepages and its namespace's quota are in that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from extender.planning.regrouping import (
    MOST_GROUPS,
    MOST_MEMBERS,
    Apart,
    CutGroup,
    CutMember,
    PlanBasis,
    Regrouping,
    Regroupings,
    RegroupStep,
    Spot,
    WhyApart,
    plan,
    plan_all,
)
from extender.scoring.node_table import NodeTable
from extender.scoring.predict import Wanted, predict
from extender.settings import Settings
from extender.state.admission import Admission, NodeSet
from extender.state.columns.free_room import FreeRoom, NumaPlace
from extender.state.group_spec import NOTHING, USUAL, GroupSpec, Specs
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from extender.traffic.known import ClusterTraffic
from numakin.placement.decide.request import Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.workload import NODE
from numakin.placement.plan.problem import pulls_of
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.placement.traffic import silent

BOUND_TO_NODES = frozenset({NODE, "DaemonSet"})
COUNTING = frozenset({"Job", "CronJob"})
"""Controllers that make another pod for one that is gone on the same node, and those that count it as failed."""

TRIES = 3
"""Plans of a group of which decide() refused a step."""

FindWant = Callable[[PodRow], Wanted | None]
FindRow = Callable[[str], PodRow | None]


@dataclass(frozen=True, slots=True)
class CutGroups:
    """groups: by name, the nodes with their members; the largest, `others` is how many members the rest has, by node.
    waiting: groups of which pods wait. closed: nodes that take no new pods, or only who tolerates that. views: of
    all live nodes, by name.
    """

    at: float
    groups: Mapping[str, Mapping[str, int]]
    others: Mapping[str, Mapping[str, int]]
    waiting: Collection[str]
    closed: Collection[str]
    views: Mapping[str, NodeView]
    room: FreeRoom | None
    known: ClusterTraffic
    specs: Specs
    admission: Admission

    @classmethod
    def of(cls, nodes: NodeTable, now: float, settings: Settings, closed: Collection[str]) -> CutGroups:
        """Under the cluster's lock."""
        nodes.show("")
        cut = {group: there for group in nodes.groups.names() if len(there := dict(nodes.groups.nodes(group))) > 1}
        for group, names in nodes.known.members.items():
            if group not in cut:
                found = Counter(node for name in names for node in nodes.locations.of(name).values())
                cut |= {group: dict(found)} if len(found) > 1 else {}
        largest = sorted(cut, key=lambda group: (-sum(cut[group].values()), group))[:MOST_GROUPS]
        return cls(
            at=now,
            groups={group: cut[group] for group in largest},
            others={group: cut[group] for group in cut.keys() - {*largest}},
            waiting=frozenset(nodes.waiting.changes),
            closed=frozenset(closed),
            views={view.name: view for view in nodes.live_views(now, settings.report_timeout)} if cut else {},
            room=nodes.free_room(now, settings.report_timeout, nodes.cordoned) if cut else None,
            known=nodes.known,
            specs=nodes.specs,
            admission=nodes.admission,
        )

    def plans(self, row: FindRow, want: FindWant, pause: Callable[[], None]) -> Regroupings:
        """row: what the API server has of a pod, by uid. want: what it asks for. pause: as `plan_all` calls it."""
        apart = {group: Apart(there, WhyApart.TOO_MANY) for group, there in self.others.items()}
        cuts: dict[str, CutGroup] = {}
        for group, there in self.groups.items():
            cut = self._cut(group, there, row)
            if isinstance(cut, WhyApart):
                apart[group] = Apart(there, cut)
            else:
                cuts[group] = cut
            pause()
        plans = self._planned(cuts, row, want, pause)
        apart |= {group: Apart(self.groups[group], WhyApart.NO_PLACE) for group in cuts.keys() - plans.keys()}
        return Regroupings(self.at, plans, dict(sorted(apart.items())))

    def _planned(
        self, cuts: Mapping[str, CutGroup], row: FindRow, want: FindWant, pause: Callable[[], None]
    ) -> dict[str, Regrouping]:
        """Those that decide() would carry out."""
        if self.room is None:
            return {}
        room, planned = self.room, dict[str, Regrouping]()
        steps = StepChecks(self.views, row, want)
        for group, found in plan_all(cuts.values(), room, self._closeness, pause).items():
            cut, tried = cuts[group], found
            for _ in range(TRIES):
                refused = steps.refused(tried)
                pause()
                if not refused:
                    planned[group] = tried
                    break
                cut = replace(cut, barred=cut.barred | refused)
                again = plan(cut, room, self._closeness, pause)
                if again is None:
                    break
                tried = again
        return planned

    def _cut(self, group: str, there: Mapping[str, int], row: FindRow) -> CutGroup | WhyApart:
        if group in self.waiting:
            return WhyApart.SETTLING
        if sum(there.values()) > MOST_MEMBERS:
            return WhyApart.TOO_LARGE
        members = []
        for node in sorted(there):
            view = self.views.get(node)
            if view is None:
                return WhyApart.SETTLING
            for pod in self._members(group, view, row):
                seen = row(pod.pod)
                if seen is None or seen.leaving or seen.phase != "Running":
                    return WhyApart.SETTLING
                if pod.pod not in view.index.reported_members or not pod.numa_nodes:
                    return WhyApart.SETTLING  # it is not known where it is
                members.append(_member(seen, pod, node, self.admission.where(seen.terms)))
        if len(members) < sum(there.values()):
            return WhyApart.SETTLING
        if not any(member.movable for member in members):
            return WhyApart.FIXED
        basis = PlanBasis.of({member.uid: member.spot.node for member in members}, self.closed)
        return CutGroup(group, tuple(members), basis, self._pulls(members, self.specs.get(group, NOTHING), group))

    def _members(self, group: str, view: NodeView, row: FindRow) -> list[Reservation]:
        found = self.known.groups
        return [
            pod
            for pod in view.index.members
            if pod.group == group
            or (not pod.group and (seen := row(pod.pod)) is not None and found.get(seen.workload) == group)
        ]

    def _pulls(self, members: list[CutMember], spec: GroupSpec, group: str) -> dict[tuple[str, str], float]:
        """Of each pair of pods; of a pair without seen traffic, as the rest of the group would let expect."""
        replicas = Counter(member.workload for member in members)
        peers = self.known.peers
        weights = {
            (name, peer): weight
            for name in replicas
            for peer, weight in peers.get(name, {}).items()
            if name <= peer and peer in replicas
        }
        weights = silent.with_silent(weights, dict.fromkeys(replicas, group))
        priority = {name: spec.priorities.get(name, USUAL) for name in replicas}
        weighed = {pair: weight * priority[pair[0]] * priority[pair[1]] for pair, weight in weights.items()}
        names = sorted(replicas)
        pulls = pulls_of({name: replicas[name] for name in names}, weighed)
        return {
            (name, names[other]): weight
            for kind, name in enumerate(names)
            for other, weight in pulls[kind].items()
            if kind <= other
        }

    def _closeness(self, node: str, a: int, b: int) -> float:
        view = self.views.get(node)
        return view.machine.closeness(a, b) if view is not None else float(a == b)


def movable(row: PodRow) -> bool:
    """Whether another pod is created for it, were it evicted, and may run on any node that its terms of nodes admit."""
    kind = row.owner.kind if row.owner is not None else NODE
    return not (kind in BOUND_TO_NODES | COUNTING or row.own_terms or row.devices)


def _member(row: PodRow, pod: Reservation, node: str, where: NodeSet) -> CutMember:
    spot = Spot(node, pod.numa_nodes)
    said = pod.demand, movable(row), where, row.beside
    return CutMember(row.uid, row.namespace, row.name, row.workload, spot, *said)


class StepChecks:
    """What nodes' enforcers would say of the steps, each with those before it carried out."""

    def __init__(self, views: Mapping[str, NodeView], row: FindRow, want: FindWant) -> None:
        self._views, self._row, self._want = views, row, want
        self._occupancies: dict[str, Occupancy] = {}

    def refused(self, found: Regrouping) -> frozenset[tuple[str, NumaPlace]]:
        """The places that pods of a workload would not get; where there are none, the steps count as carried out."""
        after, refused = dict(self._occupancies), set[tuple[str, NumaPlace]]()
        for step in found.steps:
            occupancy = self._with(step, after)
            if occupancy is None:
                refused.add((step.workload, step.to))
            else:
                after[step.to.node] = occupancy
        if not refused:
            self._occupancies = after
        return frozenset(refused)

    def _with(self, step: RegroupStep, occupancies: Mapping[str, Occupancy]) -> Occupancy | None:
        """The node's, with the pod on just this NUMA node; None where that would not be."""
        view, row = self._views.get(step.to.node), self._row(step.uid)
        if view is None or row is None:
            return None
        try:
            want = self._want(row)
        except PlacementError:
            return None
        if want is None:
            return None
        home = NumaSet.of((step.to.numa_node,))
        occupancy = occupancies.get(step.to.node, view.occupancy)
        prediction = predict(view.machine, occupancy, want, Kin(expected=home))
        if not (prediction.fits_as_asked and prediction.admitted and prediction.numa_nodes == home):
            return None
        return occupancy.changed(
            {reservation.key: reservation for reservation in prediction.reservations},
            {allocation.container: allocation for allocation in prediction.allocations},
            checked=False,
        )
