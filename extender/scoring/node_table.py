"""Every node's view, who is assumed where, and how long each enforcer has been silent. Under the cluster's lock."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from extender.planning.group_planner import Plans
from extender.scoring.group_holds import GroupHolds, HeldPlan, PromisedRoom
from extender.scoring.kin import GroupMembers, kins
from extender.scoring.predict import Wanted, opt_ins, wanted
from extender.scoring.replicas_to_come import ReplicasToCome
from extender.scoring.single import NodeScores, needs_of
from extender.scoring.steering import VacantSlots
from extender.scoring.waiting_members import WaitingMembers
from extender.state.admission import EVERY_NODE, Admission
from extender.state.columns.candidates import Candidates, Weighing
from extender.state.columns.free_room import FreeRoom, NumaPlace
from extender.state.columns.store import NOT_HELD, ColumnStore
from extender.state.group_spec import NOTHING, GroupSpec, Specs
from extender.state.kins import Kins
from extender.state.node_domains import NodeDomains
from extender.state.node_report import Report, ReportRefused
from extender.state.node_view import Assumption, NodeView
from extender.state.pod_terms import NO_POD_TERMS
from extender.state.pods import Allocatable, PodRow
from extender.state.told_groups import ToldSizes
from extender.state.workload_locations import WorkloadLocations
from extender.traffic.known import ClusterTraffic
from numakin.placement.model.demand import Demand
from numakin.placement.optin.options import Defaults
from numakin.placement.optin.parsing import OptIn, opted_in
from numakin.placement.optin.quotas import UNLIMITED, Quota
from numakin.placement.state.occupancy import Reservation

NO_PODS: Mapping[str, int] = {}


class NodeState(NamedTuple):
    """A node's view with what passes with time. age: seconds since its enforcer last sent anything."""

    view: NodeView
    age: float
    connected: bool


@dataclass(frozen=True, slots=True)
class TableContents:
    """A table at one moment. received: by node, when its enforcer last sent anything. held: assumptions by pod uid."""

    known: ClusterTraffic
    specs: Specs
    plans: Plans
    quotas: Mapping[str, Quota]
    views: tuple[NodeView, ...]
    received: Mapping[str, float]
    connected: frozenset[str]
    held: Mapping[str, Assumption]
    workloads: Mapping[str, str]
    waiting: WaitingMembers
    group_holds: GroupHolds
    domains: NodeDomains
    told: ToldSizes
    to_come: ReplicasToCome
    cordoned: frozenset[str]
    admission: Admission


class NodeTable:
    """An assumption is on at most one node for each pod, and never for a pod that its node has reported in full.

    A private one is in its node's view while that is shown to its own gang (`show`), and counts for no other pod.

    group_holds: what is held for groups whose pods wait. It is in the views once they are read: while pods of one group
    are asked about, one after the other, nobody reads what is held for it. holds: how often a place was taken for an
    assumption or a group, or given up.
    """

    def __init__(self) -> None:
        self.groups = GroupMembers()
        self.locations, self.waiting = WorkloadLocations(), WaitingMembers()
        self.group_holds = GroupHolds()
        self.known = ClusterTraffic()
        self.specs: Specs = {}
        self.plans: Plans = {}
        self.quotas: Mapping[str, Quota] = {}
        """By namespace, where an operator has set one."""
        self.domains, self.told, self.to_come = NodeDomains(), ToldSizes(), ReplicasToCome()
        self.cordoned: frozenset[str] = frozenset()
        self.admission = EVERY_NODE
        self._columns = ColumnStore()
        self._views: dict[str, NodeView] = {}
        self._received_at: dict[str, float] = {}
        self._connected: set[str] = set()
        self._due: set[str] = set()
        """Nodes whose views may lack what is held there for groups by now."""
        self._held: dict[str, Assumption] = {}
        self._private: defaultdict[str, dict[str, Assumption]] = defaultdict(dict)
        """Those that are private, by gang and by pod."""
        self._shown = ""
        self._none_late_before = math.inf
        self.holds = 0

    def contents(self) -> TableContents:
        """All that the table is made of, as it is now, without what is private."""
        self.show("")
        self._settle()
        return TableContents(
            known=self.known,
            specs=self.specs,
            plans=self.plans,
            quotas=self.quotas,
            views=tuple(self._views.values()),
            received=dict(self._received_at),
            connected=frozenset(self._connected),
            held={pod: assumption for pod, assumption in self._held.items() if not assumption.private},
            workloads=self.locations.workloads(),
            waiting=self.waiting.copy(),
            group_holds=self.group_holds.copy(),
            domains=self.domains,
            told=self.told.copy(),
            to_come=self.to_come.copy(),
            cordoned=self.cordoned,
            admission=self.admission,
        )

    @classmethod
    def of(cls, contents: TableContents) -> NodeTable:
        """A table of its own: what changes there changes nothing elsewhere."""
        table = cls()
        table.known, table.specs, table.plans = contents.known, contents.specs, contents.plans
        table.quotas, table.waiting = contents.quotas, contents.waiting
        table.group_holds, table.cordoned = contents.group_holds, contents.cordoned
        table.told, table.to_come, table.admission = contents.told, contents.to_come, contents.admission
        table.located(contents.domains)
        for uid, workload in contents.workloads.items():
            table.locations.named(uid, workload)
        for view in contents.views:
            table._swap(view)
            table.received(view.name, contents.received[view.name])
        table._connected, table._held = set(contents.connected), dict(contents.held)
        table._none_late_before = -math.inf
        return table

    def kins(self, nodes: Sequence[str], want: Wanted) -> Kins:
        """The pod's kin as each node's enforcer should weigh them, with the slot that is planned for it on one of these
        nodes.
        """
        return self._planned(nodes, want)[0]

    def _planned(self, nodes: Sequence[str], want: Wanted) -> tuple[Kins, str | None]:
        """And the node with that slot. Of a group of which priorities or traffic are known, none is planned by its size
        alone, but where it is updated, as its kin are about to go, and one NUMA node is to have all of it.
        """
        spec = self.spec(want.pod, want.group)
        members = self.uids_of(want.group) if spec.priorities else ()
        on_nodes = kins(
            want, self.known, self.groups, self.locations,
            spec=spec, members=members, waiting=self._to_come_milli(want), told=self._told(want.pod),
        )  # fmt: skip
        if (promised := self.group_holds.promised(want.pod.uid)) is not None:
            return on_nodes.planned(promised.node, promised.numa_node), promised.node
        known = spec.priorities or self.known.peers.get(want.pod.workload)
        place = self._open_place(want.pod.uid, nodes) if not known or self._updated_together(want) else None
        if place is not None and on_nodes.near and place.node not in on_nodes.near:
            foreseen = self.group_holds.foreseen(want.group).issuperset(on_nodes.near)
            place = place if foreseen else None  # else its kin went elsewhere since it was planned
        elif place is not None and not self._at_home(want.group, place.node):
            place = None
        if place is None and self.plans:
            place = VacantSlots(self.plans, self.known, self.locations, self.view).vacant(want, nodes)
        if place is None:
            if not on_nodes.near and (awaited := self.waiting.devices_beside(want.pod.uid, want.group)):
                on_nodes = Kins(replace(on_nodes.no_kin, devices=awaited))
            return on_nodes, None
        return on_nodes.planned(place.node, place.numa_node), place.node

    def _updated_together(self, want: Wanted) -> bool:
        return self.to_come.templates.replaces(want.pod.workload) and self.group_holds.together(want.group)

    def _at_home(self, group: str, node: str) -> bool:
        """Whether the group's members on the node, if there are any, are where its plan knew or wanted some."""
        there = [*self._places_on(node, group)]
        return not there or not self.group_holds.homes(group).isdisjoint(there)

    def spec(self, pod: PodRow, group: str) -> GroupSpec:
        """What is asked for a pod's group. group: as it names it; empty: as it was found for its workload."""
        return self.specs.get(group or self.known.group_of(pod.workload), NOTHING) if self.specs else NOTHING

    def _told(self, pod: PodRow) -> int:
        """How many the pod's group will be, as other controllers say: 0: they do not."""
        return pod.told_size or self.told.of(pod.sized_by)

    def _to_come_milli(self, want: Wanted) -> int:
        """What the group's members that have no node yet are expected to take, but for this one."""
        pod, uses = want.pod, self.known.uses
        unseen = "" if self.locations.workload(pod.uid) else pod.workload
        return self.waiting.beside(pod.uid, want.group, uses) + self.to_come.milli(want.group, uses, beside=unseen)

    def uids_of(self, group: str) -> list[str]:
        """Of a named group's members, assumed ones too."""
        uids = []
        for node in self.groups.nodes(group):
            occupancy = self._views[node].occupancy
            uids += [occupancy.reservations[key].pod for key in occupancy.directory.by_group.get(group, ())]
        return uids

    def wanted(self, pod: PodRow) -> Wanted | None:
        """None for a pod that has not opted in: nearly all are, and they are answered at once.

        BadQuantity when a demand can't be read.
        """
        if not opted_in(pod.annotations):
            return None
        used_milli = self.known.uses.get(pod.workload, 0) if self.known.uses else 0
        return wanted(pod, self._defaults(pod), self.quotas.get(pod.namespace, UNLIMITED), used_milli)

    def from_group(self, pod: PodRow) -> dict[str, OptIn]:
        """What containers, by name, ask for with what their group's object says, where that is not what they say."""
        if not self.specs:
            return {}
        own = opt_ins(pod)
        return {name: opt_in for name, opt_in in opt_ins(pod, self._defaults(pod)).items() if opt_in != own[name]}

    def _defaults(self, pod: PodRow) -> Callable[[str], Defaults]:
        return lambda group: self.spec(pod, group).defaults

    def view(self, node: str) -> NodeView | None:
        if node in self._due:
            self._settle()
        return self._views.get(node)

    def pods_view(self, node: str) -> NodeView | None:
        """As `view`, for who asks what pods have there alone: what is held for groups may be another by now."""
        return self._views.get(node)

    def states(self, now: float) -> list[NodeState]:
        """Of all nodes."""
        self.show("")
        self._settle()
        return [
            NodeState(view, now - self._received_at[node], node in self._connected)
            for node, view in self._views.items()
        ]

    def live_views(self, now: float, timeout: float) -> list[NodeView]:
        """Of the nodes where pods that start now would be placed. timeout: seconds of silence."""
        self.show("")
        self._settle()
        return self._columns.live_views(now, timeout)

    def candidates(self, names: Sequence[str], want: Wanted, now: float) -> Candidates:
        """As the pods of its gang find them."""
        self.show(want.pod.gang)
        self._settle()
        on_nodes, planned = self._planned(names, want)
        home = self.locations.node(want.pod.uid)
        return self._columns.candidates(
            names, now, needs_of(want, on_nodes), kins=on_nodes, planned=planned, own=home,
            unlike={*on_nodes.near, *self.groups.nodes(want.group), *((home,) if home else ())},
        )  # fmt: skip

    def located(self, domains: NodeDomains) -> None:
        """From now on nodes are near each other as these say."""
        if domains != self.domains:
            self.domains = domains
            self._columns.located(domains)

    def free_room(
        self,
        now: float,
        timeout: float,
        but: Collection[str],
        *,
        held: Mapping[NumaPlace, Demand] = NOT_HELD,
        for_pods: Mapping[str, int] = NO_PODS,
        sizes: Collection[int] = (),
        resources: Collection[str] = (),
    ) -> FreeRoom:
        """As the column store has it. for_pods: for how many pods that is held which counts as free, by node."""
        self._settle()
        there = self._pods_on_nodes(for_pods)

        def given(node: str) -> tuple[float, float, float]:
            cpu, memory, pods = self._allocatable(node)
            return cpu, memory, pods - there.get(node, 0)

        return self._columns.free_room(now, timeout, but, given, held=held, sizes=sizes, resources=resources)

    def left_on(self, view: NodeView, for_pods: int) -> Allocatable:
        """What kube-scheduler has left to give beside what the view has. for_pods: as for `free_room`, of this node."""
        cpu, memory, pods = self._allocatable(view.name)
        requested, there = view.requested, self._pods_on_nodes({view.name: for_pods})[view.name]
        return Allocatable(cpu - requested[0], memory - requested[1], pods - there)

    def _allocatable(self, node: str) -> Allocatable:
        """Less what its pods take beside their containers."""
        cpu, memory, pods = self.admission.allocatable(node)
        taken = self.to_come.counts.overhead.get(node, (0, 0))
        return Allocatable(cpu - taken[0], memory - taken[1], pods)

    def pods_held_for_groups(self) -> Counter[str]:
        """Of how many pods that are neither assumed nor bound a place is held for their group, by node."""
        return Counter(self.group_holds.nodes_of(self.assumed))

    def _pods_on_nodes(self, for_pods: Mapping[str, int]) -> Counter[str]:
        """How many are bound to each, assumed there, or have a place held there, but for these."""
        there = self.to_come.counts.pods.copy()
        there.update(held.node for held in self._held.values() if not (held.bound or held.private))
        there.update(self.pods_held_for_groups())
        there.subtract(for_pods)
        return there

    def members_by_place(self, group: str) -> Counter[NumaPlace]:
        """How many of a named group are on each NUMA node, assumed ones too; without those on several, and those on
        cordoned nodes.
        """
        there: Counter[NumaPlace] = Counter()
        for node in self.groups.nodes(group).keys() - self.cordoned:
            there.update(self._places_on(node, group))
        return there

    def _places_on(self, node: str, group: str) -> dict[NumaPlace, int]:
        view = self._views.get(node)
        grouped = view.occupancy.directory.grouped if view is not None else {}
        return {
            NumaPlace(node, mask.bit_length() - 1): groups[group]
            for mask, groups in grouped.items()
            if group in groups and mask.bit_count() == 1
        }

    def members_on(self, nodes: Iterable[str], group: str) -> Iterator[Reservation]:
        """A named group's there, assumed ones too."""
        for node in nodes:
            if (view := self._views.get(node)) is not None:
                occupancy = view.occupancy
                yield from (occupancy.reservations[key] for key in occupancy.directory.by_group.get(group, ()))

    def assumed(self, pod: str) -> bool:
        """Whether the pod has room of its own that counts for all pods: its node has reported it, or it is assumed."""
        held = self._held.get(pod)
        return not held.private if held is not None else self.locations.node(pod) is not None

    def keep(self, candidates: Candidates, weighing: Weighing, known: NodeScores) -> None:
        """For pods to come that need the same. weighing: the candidates'. known: as `weighing.over_arrays` has them."""
        self._columns.keep(candidates, weighing, known.rows)

    def refresh(self) -> None:
        """Works out what candidates will be made of."""
        self._columns.refresh()

    def connected(self, node: str, now: float) -> None:
        self._connected.add(node)
        self.received(node, now)

    def disconnected(self, node: str) -> None:
        self._connected.discard(node)
        if node not in self._views:
            self._received_at.pop(node, None)

    def received(self, node: str, now: float) -> None:
        self._received_at[node] = now
        self._columns.received(node, now)

    def reported(self, fresh: NodeView, report: Report, now: float) -> NodeView | ReportRefused:
        """Applies a report to the view held of this node and session; a whole report to the given fresh one."""
        held = self._views.get(fresh.name)
        if held is not None and report.base and held.session == fresh.session:
            after = held.applied(report)
        else:
            after = fresh.with_assumptions_of(held).applied(report)
        if isinstance(after, ReportRefused):
            return after
        for pod in held.assumed.keys() - after.assumed.keys() if held else ():
            self._drop(pod)
        for assumption in after.assumed.values():
            self._keep(assumption)
        for pod in [pod for pods in self._private.values() for pod in pods if pod in after.index.pods]:
            self._drop(pod)
        self._swap(after)
        self._hold_on((after.name,))
        self.received(after.name, now)
        return after

    def held(self, pod: str) -> Assumption | None:
        return self._held.get(pod)

    def assumed_at(self, pod: str) -> NumaPlace | None:
        """Where room is held for the pod itself, a try of its gang too; None where it is on several NUMA nodes."""
        held = self._held.get(pod)
        if held is None or len(held.numa_nodes) != 1:
            return None
        return NumaPlace(held.node, *held.numa_nodes)

    def tried(self) -> dict[str, NumaPlace]:
        """By uid where the pods of gangs would be that are being tried: those that would be on one NUMA node each."""
        pods = (pod for pods in self._private.values() for pod in pods)
        return {pod: place for pod in pods if (place := self.assumed_at(pod)) is not None}

    def assumptions(self) -> list[Assumption]:
        return list(self._held.values())

    def hold(self, assumption: Assumption) -> None:
        """In place of any other for the same pod; nothing on a node that is not known or has reported the pod."""
        self.release(assumption.pod)
        view = self._views.get(assumption.node)
        if view is None or assumption.pod in view.index.pods:
            return
        self._keep(assumption)
        self._none_late_before = min(self._none_late_before, assumption.until)
        self.holds += 1
        if not assumption.private or assumption.gang == self._shown:
            self._swap(view.bare.assuming(assumption))
            self._hold_on((assumption.node,))
        planned = self.group_holds.place(assumption.pod)
        if planned is not None and planned.node != assumption.node:
            self._hold_on((planned.node,))

    def release(self, *pods: str) -> None:
        gone = [assumption for pod in pods if (assumption := self._drop(pod)) is not None]
        if gone:
            self.holds += 1
            self._withdraw(gone)

    def release_gang(self, gang: str) -> None:
        """All that its pods hold which are not bound."""
        self.release(*(pod for pod, held in self._held.items() if held.gang == gang and not held.bound))

    def hold_for_groups(self, plan: HeldPlan) -> None:
        """From now on room is held for these waiting pods where they are planned."""
        self._reserved(self.group_holds.plan(plan))

    def created(self, uids: Iterable[str]) -> None:
        """Gives these pods the places that were planned for what was to come, those that wait and may go there."""
        for uid in uids:
            pod = self.waiting.get(uid)
            if pod is None or pod.holds_nothing or pod.own_terms:
                continue
            demand = pod.expected(self.known.uses)
            may_go = partial(self.admission.admits, pod.terms)
            node = self.group_holds.came(uid, pod.group, pod.workload, demand, may_go, devices=pod.devices)
            self._reserved({node} - {""})

    def settles(self, row: PodRow) -> bool:
        """Whether the groups' plan stays right with the pod as it is now: it is no member, or runs where it did, or is
        bound to the node that it was planned for.
        """
        if not opted_in(row.annotations):
            return True
        if not row.node or row.leaving or row.ended:
            return False
        planned = self.group_holds.place(row.uid)
        return planned.node == row.node if planned is not None else self.waiting.get(row.uid) is None

    def unplan(self, pods: Iterable[str]) -> None:
        """They are bound, or are no more."""
        self._hold_on(node for pod in pods if (node := self.group_holds.gone(pod)))

    def give_up(self, *pods: str) -> None:
        """kube-scheduler found no place for their gangs: nothing more is held for them beside what is tried."""
        self.unplan(uid for uid in self.waiting.give_up(*pods) if self.group_holds.promised(uid) is None)

    def _open_place(self, uid: str, nodes: Sequence[str]) -> NumaPlace | None:
        """Where the pod is planned; where kube-scheduler does not let it go there by now, and it says something of
        others, the place of a pod alike that is among these nodes.
        """
        place = self.group_holds.place(uid)
        if place is None or place.node in nodes or not self._says_of_others(uid):
            return place
        return next((other for _, other in self._alike(uid) if other.node in nodes), place)

    def exchange(self, uid: str, node: str) -> bool:
        """Gives the pod the place on this node that was planned for one alike, and that one its own."""
        found = next((other for other, place in self._alike(uid) if place.node == node), None)
        if found is None or not self._says_of_others(uid):
            return False
        self.group_holds.exchange(uid, found)
        return True

    def _says_of_others(self, uid: str) -> bool:
        pod = self.waiting.get(uid)
        return pod is not None and pod.kind.said != NO_POD_TERMS

    def _alike(self, uid: str) -> Iterator[tuple[str, NumaPlace]]:
        """The waiting pods alike that are planned somewhere, and where."""
        for other in self.waiting.alike(uid):
            if (place := self.group_holds.place(other)) is not None and not self.assumed(other):
                yield other, place

    def missed(self, pod: str) -> None:
        """The pod can't be where it was planned, by what only kube-scheduler knows."""
        self._hold_on(node for node in (self.group_holds.missed(pod),) if node)

    def promise(self, group: str, promise: PromisedRoom, priority: int) -> None:
        """From now on room is held for the pod that is to come, beside what is planned."""
        self._reserved(self.group_holds.promise(group, promise, priority))

    def withdraw(self, group: str) -> None:
        """Gives back what is promised to the group: no pod comes any more."""
        self._reserved(self.group_holds.withdraw(group))

    def claim(self, evicted: Callable[[str], bool]) -> None:
        """Room that is promised is for the first pod that waits of the workload, once the pod before it is evicted."""
        for group, promise in self.group_holds.unclaimed():
            newcomer = self.waiting.first_of(group, promise.workload) if evicted(promise.gone) else None
            if newcomer is not None:
                self._reserved(self.group_holds.claim(group, newcomer))

    @contextmanager
    def yielding(self, want: Wanted | None, *, gang: str) -> Iterator[None]:
        """Meanwhile views are shown to the gang without what does not count for the pod, None: nothing is held; and
        nothing else may change.
        """
        self.show(gang)
        holds = self.group_holds
        groups = {*holds.groups()} if want is None else holds.yielding_to(want.group, want.pod.priority)
        nodes = {node for group in groups for node in holds.nodes(group) if node in self._views}
        due = self._due & nodes
        self._due -= nodes
        self._settle()
        before = [self._views[node] for node in nodes]
        for view in before:
            self._show(self._with_groups(view, but=groups))
        try:
            yield
        finally:
            for view in before:
                if view.name not in due:
                    self._show(view)
            self._due |= due

    def confirm(self, assumption: Assumption) -> None:
        """In place of the one that is held for its pod on the same room: for others nothing changes."""
        self._keep(assumption)
        self._swap(self._views[assumption.node].confirming(assumption))

    def show(self, gang: str) -> None:
        """From now on views have what is private to this gang, and of no other; empty: of none."""
        if gang == self._shown:
            return
        self._withdraw(self._private.get(self._shown, {}).values())
        self._shown = gang
        for node, assumptions in _by_node(self._private.get(gang, {}).values()).items():
            self._swap(self._views[node].assuming(*assumptions))

    def publish(self, gang: str) -> None:
        """What is private to the gang counts for all pods from now on: one of its own is bound."""
        if gang not in self._private:
            return
        self.show(gang)
        for assumption in [*self._private[gang].values()]:
            self.confirm(replace(assumption, private=False))
            self._hold_on((assumption.node,))
        self.holds += 1

    @contextmanager
    def released(self, pod: str) -> Iterator[None]:
        """Meanwhile the pod is assumed nowhere, and nothing else may change; then all is as before. Within `yielding`
        to the pod, so that nothing is held on its node for its own group, which would be another amount without it.
        """
        held = self._held.get(pod)
        if held is None:
            yield
            return
        before, shown = self._views[held.node], self._shown
        self._drop(pod)
        self._swap(before.without_assumed(pod))
        try:
            yield
        finally:
            self.show(shown)
            self._keep(held)
            self._swap(before)

    def ended(self, pod: str, node: str) -> None:
        """The API server does not have the pod any more: its room on the node is free."""
        view = self._views.get(node)
        after = view.without_ended(pod) if view is not None else None
        if after is not None and after is not view:
            self._swap(after)

    def came_back(self, pod: str, node: str) -> None:
        """The API server has the pod again that had ended."""
        view = self._views.get(node)
        if view is not None:
            self._swap(view.not_ended(pod))

    def expire(self, now: float, renewed: Callable[[Assumption], Assumption | None]) -> int:
        """How many assumptions had their time without the enforcer showing the pod. renewed: one that had and lasts all
        the same; None: it does not.
        """
        if now < self._none_late_before:
            return 0
        late = {pod: renewed(assumption) for pod, assumption in self._held.items() if assumption.until <= now}
        for assumption in late.values():
            if assumption is not None:
                self.confirm(assumption)
        ended = [pod for pod, assumption in late.items() if assumption is None]
        self.release(*ended)
        self._none_late_before = min((assumption.until for assumption in self._held.values()), default=math.inf)
        return len(ended)

    def forget(self, nodes: Iterable[str]) -> None:
        """Nodes that are no more in the cluster."""
        for node in nodes:
            view = self._views.pop(node, None)
            if view is not None:
                self._columns.drop(node)
                self.groups.changed(node, view, None)
                self.locations.changed(node, view, None)
                for pod in [pod for pod, held in self._held.items() if held.node == node]:
                    self._drop(pod)
            self._received_at.pop(node, None)

    def _keep(self, assumption: Assumption) -> None:
        self._drop(assumption.pod)
        self._held[assumption.pod] = assumption
        if assumption.private:
            self._private[assumption.gang][assumption.pod] = assumption

    def _drop(self, pod: str) -> Assumption | None:
        assumption = self._held.pop(pod, None)
        if assumption is not None and assumption.private:
            del self._private[assumption.gang][pod]
            if not self._private[assumption.gang]:
                del self._private[assumption.gang]
        return assumption

    def _withdraw(self, assumptions: Iterable[Assumption]) -> None:
        """Views have them no more, as far as they did."""
        for node, here in _by_node(assumptions).items():
            bare = self._views[node].bare
            self._swap(bare.without_assumed(*(assumption.pod for assumption in here)))
            self._hold_on((node,))

    def _with_groups(self, view: NodeView, but: Collection[str] = ()) -> NodeView:
        """With what is held there for groups, other than these."""
        return view.holding(self.group_holds.on(view.name, self.assumed, but=but))

    def _reserved(self, nodes: Collection[str]) -> None:
        """Places there were taken for a group, or given up."""
        if nodes:
            self.holds += 1
            self._hold_on(nodes)

    def _hold_on(self, nodes: Iterable[str]) -> None:
        """What is held for groups has changed there."""
        self._due.update(nodes)

    def _settle(self) -> None:
        """From now on views have what is held for groups."""
        for node in self._due:
            if (view := self._views.get(node)) is not None:
                self._show(self._with_groups(view))
        self._due.clear()

    def _show(self, after: NodeView) -> None:
        """With the same members as before."""
        if after is not self._views[after.name]:
            self._views[after.name] = after
            self._columns.put(after)

    def _swap(self, after: NodeView) -> None:
        before = self._views.get(after.name)
        if after is before:
            return
        self.groups.changed(after.name, before, after)
        self.locations.changed(after.name, before, after)
        self._views[after.name] = after
        self._columns.put(after)


def _by_node(assumptions: Iterable[Assumption]) -> Mapping[str, list[Assumption]]:
    by_node: dict[str, list[Assumption]] = {}
    for assumption in assumptions:
        by_node.setdefault(assumption.node, []).append(assumption)
    return by_node
