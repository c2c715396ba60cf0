"""The cluster as the extender knows it: the one mutable object of the program.

Enforcers' reports, the API server's watch and kube-scheduler's questions meet here, each on its own thread. Whatever is
kept is an immutable value, swapped whole under one lock; answers are computed outside it, on the values taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from threading import Lock

from extender.ledger import BindingLedger, Nomination
from extender.picture import Figures, Picture
from extender.planning.group_planner import GroupPlanner, Plans
from extender.planning.regrouping import NOT_SEARCHED, Regroupings
from extender.pod_wait import PodWait
from extender.promises import Promises
from extender.scoring.cut_groups import CutGroups
from extender.scoring.group_holds import HeldPlan
from extender.scoring.history import History, Offer, PodStory
from extender.scoring.node_table import NodeState, NodeTable
from extender.scoring.predict import Wanted
from extender.scoring.prepared import Prepared, Snapshot, Snapshots, prepared
from extender.scoring.refused_pods import RefusedPods, Welcome, WelcomeRound
from extender.scoring.strict import NodeRefusal, refusals
from extender.scoring.victims import Terms, victims
from extender.scoring.waiting_groups import WaitingGroups
from extender.settings import DEFAULT_SETTINGS, Settings
from extender.state.columns.candidates import Candidates
from extender.state.columns.free_room import NumaPlace
from extender.state.faults import Faults
from extender.state.group_spec import Specs
from extender.state.label_domains import node_facts
from extender.state.node_domains import NodeDomains
from extender.state.node_report import Report, ReportRefused
from extender.state.node_view import NodeView
from extender.state.pods import Changes, NodeRow, PodRow
from extender.state.told_groups import ToldRow
from extender.traffic.known import ClusterTraffic
from numakin.placement.model.demand import Demand
from numakin.placement.namespaces import Namespaces
from numakin.placement.state.occupancy import Reservation
from numakin.process.log import Log

MOST_LEFT = 10_000
"""Nodes that have left and whose enforcers may go on for a while."""

_log = Log("cluster")


class Cluster:
    """Thread-safe. clock: seconds, monotonic."""

    def __init__(
        self,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Callable[[], float] = time.monotonic,
        nodes: NodeTable | None = None,
    ) -> None:
        self.settings, self.clock = settings, clock
        self._lock, self.faults = Lock(), Faults()
        self._nodes, self._history, self._refused = nodes or NodeTable(), History(), RefusedPods()
        if nodes is None:
            self._nodes.located(NodeDomains(settings.near))
        state = self._nodes, self._history, self._refused, self.faults
        self._ledger = BindingLedger(*state, clock=clock, hold_s=settings.hold)
        self._planner, self._expired = GroupPlanner(), 0
        self._snapshots = Snapshots(self._lock, self._nodes, self._candidates, self.faults, clock)
        self.namespaces: Namespaces | None = None  # as operators have set them; None: not known yet
        self._listed: set[str] = set()  # the nodes that the API server has sent
        self._closed: set[str] = set()  # those of them that take no new pods, or only who tolerates that
        self._left: dict[str, None] = {}  # those that it sent once and has no more, the latest last
        self.wait = PodWait(self._ledger, clock, settings.patience)
        self._found = NOT_SEARCHED
        self.promises = Promises(self._lock, self._nodes, self._ledger, self._live, lambda: self._closed)

    # What enforcers send.

    def view(self, node: str) -> NodeView | None:
        with self._lock:
            return self._nodes.view(node)

    def connected(self, node: str) -> None:
        with self._lock:
            self._nodes.connected(node, self.clock())

    def disconnected(self, node: str) -> None:
        """Its last report stays, and ages."""
        with self._lock:
            self._nodes.disconnected(node)

    def received(self, node: str) -> None:
        with self._lock:
            self._nodes.received(node, self.clock())

    def reported(self, fresh: NodeView, report: Report) -> NodeView | ReportRefused:
        """Applies a report; `fresh` is the view that a whole one starts from. Of a node that has left the cluster
        nothing is kept until it is there again.
        """
        with self._lock:
            self._history.decided(report.decisions)
            self._history.remembered(report.earlier)
            if fresh.name in self._left:
                return fresh.applied(report)
            after = self._nodes.reported(fresh, report, self.clock())
            if isinstance(after, NodeView):
                self._ledger.reported(after)
        if isinstance(after, NodeView):
            # Computed now, on the stream's thread, so that kube-scheduler does not wait for it.
            _ = after.table
        return after

    # What traffic taught.

    @property
    def known(self) -> ClusterTraffic:
        return self._nodes.known

    def learned(self, known: ClusterTraffic) -> None:
        """From now on it is this by which kin are weighed, and where the groups' members to come are planned. On one
        thread.
        """
        with self._lock, self._nodes.yielding(None, gang=""):  # a group's own plan uses its holds
            views = self._nodes.live_views(now := self.clock(), self.settings.report_timeout)
            views = [view for view in views if view.name not in self._nodes.cordoned]  # who is there comes again
            workloads, specs = self._nodes.locations.workloads(), self._nodes.specs
            waiting, rows = self._nodes.waiting.pods(), self._ledger.rows
            room = self._nodes.free_room(
                now, self.settings.report_timeout, self._nodes.cordoned, for_pods=self._nodes.pods_held_for_groups()
            )
        there = {workload: row for uid, workload in workloads.items() if (row := rows.get(uid)) is not None}
        terms = {workload: row.terms for workload, row in there.items()}
        terms |= {pod.workload: pod.terms for pod in waiting.values()}
        overheads = {workload: row.beside for workload, row in there.items()}
        overheads |= {pod.workload: pod.overhead for pod in waiting.values()}
        plans: Plans = {}
        try:
            plans = self._planner.plans(
                known, views, workloads, specs, now,
                domains=self._nodes.domains, admission=self._nodes.admission, terms=terms, overheads=overheads,
                left=room.left_on_nodes,
            )  # fmt: skip
        except Exception:  # noqa: BLE001 - whatever it is, what was learned is to be used
            _log.exception("not planned: newcomers follow their kin, by what is known now")
        with self._lock:
            self._nodes.known, self._nodes.plans = known, plans

    @property
    def plans(self) -> Plans:
        return self._nodes.plans

    # What the operator asks of groups.

    def set_group_specs(self, specs: Specs) -> tuple[PodRow, ...]:
        """From now on it is this. The pods that were refused everywhere and now ask for something else: they are to be
        woken.
        """
        with self._lock:
            self._nodes.specs = specs
            waiting = self._refused.waiting()
        changed = [want.pod for want in waiting if self.wanted(want.pod) != want]
        with self._lock:
            return self._refused.take(changed)

    def set_namespaces(self, namespaces: Namespaces) -> None:
        """From now on it is this; what was placed before stays."""
        self.namespaces, self._nodes.quotas = namespaces, namespaces.quotas

    def wanted(self, pod: PodRow) -> Wanted | None:
        """What the pod asks for; None for one that has not opted in. BadQuantity when a demand can't be read."""
        return self._nodes.wanted(pod)

    def score(self, want: Wanted, names: Sequence[str]) -> Offer:
        """Each offered node's score, 0..10, in order; the leader's room is held for a pod that the API server has."""
        return self.give(self.prepared(want, names))

    def prepared(self, want: Wanted, names: Sequence[str]) -> Prepared:
        """What `score` answers; nothing is held yet."""
        self.wait.wait(want)
        snapshot = self._snapshots.of(want, names)
        self._snapshots.answered()
        timeout = self.settings.report_timeout
        ready = prepared(snapshot, timeout, self.faults, self.clock())
        if ready.leader is not None or not self._nodes.group_holds.any:
            return ready
        return prepared(
            self._despite_holds(snapshot.want, snapshot.candidates.names), timeout, self.faults, self.clock()
        )

    def _despite_holds(self, want: Wanted, names: Sequence[str]) -> Snapshot:
        """As if nothing were held for other groups, for who would find no place else."""
        with self._lock:
            candidates, at, holds = self._candidates(want, names, held=False), self.clock(), self._nodes.holds
        return self._snapshots.weighed(want, candidates, at, holds)

    def serves(self, ready: Prepared) -> bool:
        """Whether it would be answered alike now."""
        with self._lock:
            return ready.snapshot.lasts(self.clock(), self._nodes.holds)

    def give(self, ready: Prepared) -> Offer:
        """It is the answer: the pod's room is held."""
        with self._lock:
            self._ledger.scored(ready)
        return ready.offer

    def passed(self, want: Wanted, node: str) -> None:
        """Filter left the pod this one node, so that kube-scheduler will ask for no score, if it was kube-scheduler."""
        ready = self.prepared(want, (node,))
        with self._lock:
            self._ledger.scored(ready, alone=True)

    def refresh(self) -> None:
        """Works out what the next answer will be made of, once the last one is sent."""
        with self._lock:
            self._nodes.refresh()

    def refusals(self, want: Wanted, names: Sequence[str]) -> dict[str, NodeRefusal]:
        """The nodes that can't align the pod, by fresh data. A pod that is refused everywhere is to be woken."""
        self.wait.wait(want)
        snapshot = self._snapshots.of(want, names, anew=True)
        refused = refusals(snapshot.candidates, want, snapshot.known, self.settings.report_timeout, self.faults)
        if refused and self._nodes.group_holds.any:
            snapshot = self._despite_holds(want, names)
            refused = refusals(snapshot.candidates, want, snapshot.known, self.settings.report_timeout, self.faults)
        with self._lock:
            self._refused.answered(want, everywhere=len(refused) == len(names) and self._ledger.knows(want.pod))
        return refused

    def victims(self, want: Wanted, named: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """By node, the uids of the pods whose eviction lets the pod in. named: those that kube-scheduler chose."""
        with self._lock:
            candidates, rows = self._candidates(want, list(named), held=False), dict(self._ledger.rows)
        return victims(candidates, want, named, rows, Terms(self.settings.report_timeout, self.faults))

    def pods_to_retry(self, nodes: Collection[str]) -> Welcome:
        """The pods that were refused before and that one of these nodes would take now: they are to be woken."""
        names, now = list(nodes), self.clock()
        with self._lock:
            waiting, woken = self._refused.in_turn(), self._refused.woken(now)

        def candidates(want: Wanted) -> Candidates:
            with self._lock, self._nodes.yielding(None, gang=want.pod.gang):
                return self._nodes.candidates(names, want, now)

        checks = WelcomeRound(candidates, woken, self.settings.report_timeout, self.faults)
        welcome = checks.among(waiting)
        with self._lock:
            return replace(welcome, pods=self._refused.wake(checks.places, now))

    def _candidates(self, want: Wanted, names: Sequence[str], *, held: bool = True) -> Candidates:
        """The nodes as if the pod itself were assumed nowhere. held: whether what is held for other groups counts.
        Under the lock.
        """
        now = self._expire()
        self._ledger.asked(want.pod)
        self._nodes.show(want.pod.gang)
        with self._nodes.yielding(want if held else None, gang=want.pod.gang), self._nodes.released(want.pod.uid):
            return self._nodes.candidates(names, want, now)

    def _expire(self) -> float:
        """Ends the assumptions that had their time. Now; under the lock."""
        self._expired += self._ledger.expire(now := self.clock())
        return now

    def live(self, node_state: NodeState) -> bool:
        """Whether pods that start there now would be placed."""
        return node_state.view.registered and node_state.age < self.settings.report_timeout

    # What the API server sends.

    def apply_pods(self, changes: Changes[PodRow]) -> tuple[Nomination, ...]:
        """Nominations are for the pods that were seen bound by this change, in its order. A list of all pods is taken
        in steps: kube-scheduler waits for none but the present one.
        """
        steps, nominations = self._ledger.apply(changes), list[Nomination]()
        while True:
            with self._lock:
                self._expire()
                taken = [*islice(steps, 1 if changes.whole else None)]
            nominations += chain.from_iterable(taken)
            if not (taken and changes.whole):
                return tuple(nominations)
            time.sleep(0)  # else this thread would have the lock again before one that waits for it is awake

    def replans(self, changes: Changes[PodRow]) -> bool:
        """Whether what is held for groups is to be planned anew once the changes are applied, and not only in a while:
        members came, went, or were bound elsewhere than where they were planned.
        """
        with self._lock:
            return changes.whole or any(not self._nodes.settles(row) for row in changes.rows)

    def told(self, kind: str, changes: Changes[ToldRow]) -> None:
        """What other controllers' objects of one kind say of groups. What a gang holds that kube-scheduler has given up
        is free.
        """
        with self._lock:
            self._nodes.to_come.told(kind, changes.rows, changes.gone, self.clock(), whole=changes.whole)
            for gang in self._nodes.told.changed(kind, changes.rows, changes.gone, whole=changes.whole):
                self._nodes.release_gang(gang)
                self._nodes.give_up(*self._nodes.waiting.of_gang(gang))

    def apply_nodes(self, changes: Changes[NodeRow]) -> bool:
        """Nodes that left the cluster are forgotten; those that the API server never sent are kept. Whether pods may go
        elsewhere from now on, so that what is held for groups is to be planned anew.
        """
        named = {row.name for row in changes.rows}
        near, found = {row.name: row.near for row in changes.rows}, node_facts(changes.rows)
        with self._lock:
            gone = set(changes.gone) | (self._listed - named if changes.whole else set())
            self._closed = (self._closed - named - gone) | {row.name for row in changes.rows if row.closed}
            self._listed = (self._listed - gone) | named
            left = dict.fromkeys(name for name in (*self._left, *gone) if name not in named)
            self._left = dict.fromkeys([*left][-MOST_LEFT:])
            cordoned = (self._nodes.cordoned - named - gone) | {row.name for row in changes.rows if row.cordoned}
            before = self._nodes.cordoned, self._nodes.admission
            self._nodes.cordoned = frozenset(cordoned)
            self._nodes.admission = before[1].after(found, gone)
            elsewhere = before[0] != cordoned or before[1] is not self._nodes.admission
            self._nodes.located(self._nodes.domains.after(near, gone))
            self._nodes.forget(gone)
            self._ledger.forget(gone)
        self.faults.forget(gone)
        return elsewhere

    def reserve(self) -> float | None:
        """Plans anew where the groups go whose pods wait, and holds that room: on a thread of its own, which no call
        waits for. After how many seconds it is due again; None: nothing waits.
        """
        with self._lock:
            waiting = WaitingGroups.of(self._nodes, self.clock(), self.settings, self._ledger.rows)
        planned = waiting.planned()
        with self._lock:
            planned = planned.followed(waiting.before, self._nodes.assumed_at)
            pods = self._nodes.waiting
            current = {
                group: {uid: place for uid, place in places.items() if (pod := pods.get(uid)) and not pod.holds_nothing}
                for group, places in planned.places.items()
            }
            self._nodes.hold_for_groups(
                HeldPlan(
                    current, waiting.demands, waiting.priorities, waiting.nodes, planned.to_come,
                    waiting.devices, waiting.homes, waiting.settling.keys(),
                )
            )  # fmt: skip
            self._nodes.created(pods.pods().keys() - waiting.pods.keys())
            self._ledger.planned(waiting.pods.keys())
        return waiting.again_s

    def regroup(self, pause: Callable[[], None] = lambda: None) -> None:
        """Looks for groups that are cut and could be together: on a thread of its own, which no call waits for.
        pause: called after each piece of work, of some milliseconds; not under the lock.
        """
        with self._lock:
            cut = CutGroups.of(self._nodes, self.clock(), self.settings, self._closed)
        self._found = cut.plans(self._ledger.rows.get, self.wanted, pause)

    @property
    def regroupings(self) -> Regroupings:
        """What the last search has found. A plan that was made for other places, or closed nodes, than there are now is
        none any more.
        """
        found = self._found
        stale = [group for group, plan in found.plans.items() if not self.promises.stands(group, plan.basis)]
        return found.without(stale) if stale else found

    def forgotten(self, node: str) -> bool:
        """Whether the API server has the node, and nothing is known that its enforcer reported."""
        with self._lock:
            return node in self._listed and self._nodes.view(node) is None

    def pending(self, node: str) -> tuple[Nomination, ...]:
        """Again the nominations for pods that are bound to the node and that its enforcer has not shown yet."""
        with self._lock:
            return tuple(self._ledger.pending(node))

    def facts(self, node: str, pods: Iterable[str] | None = None) -> tuple[Nomination, ...]:
        """What the node's enforcer does not know of its members, of these pods alone where they are named."""
        with self._lock:
            return tuple(self._ledger.facts(node, pods))

    def departed(self, node: str) -> list[str]:
        """The uids of members that the node's enforcer still shows and that are no more."""
        with self._lock:
            return self._ledger.departed(node)

    def _live(self, node: str) -> bool:
        """Under the lock."""
        live = self._nodes.live_views(self.clock(), self.settings.report_timeout)
        return any(view.name == node for view in live)

    # What people and Prometheus ask.

    def draft(self) -> Cluster:
        """A cluster of its own that begins as this one is now, to try things out: nothing that is done there is held,
        learned, counted or remembered here.
        """
        with self._lock:
            contents, rows = self._nodes.contents(), dict(self._ledger.rows)
        draft = Cluster(self.settings, self.clock, NodeTable.of(contents))
        draft._ledger.rows = rows
        return draft

    def figures(self) -> Figures:
        """Without a walk over pods."""
        with self._lock:
            return self._figures()

    def picture(self) -> Picture:
        with self._lock:
            now, rows = self._figures(), dict(self._ledger.rows)
            names, workloads = self._history.names(), self._nodes.locations.workloads()
            admission = self._nodes.admission
        # There may be 150,000 of them: no thread waits for the lock meanwhile.
        names |= {uid: f"{row.namespace}/{row.name}" for uid, row in rows.items()}
        return Picture.of(now, names, workloads, rows, admission)

    def _figures(self) -> Figures:
        now = self._expire()
        nodes, assumed, ledger = tuple(self._nodes.states(now)), tuple(self._nodes.assumptions()), self._ledger
        bindings, faults = dict(ledger.bindings), self.faults.counts
        holds = self._nodes.group_holds
        held = holds.held_milli(self._nodes.assumed), holds.given_back
        unscored = {str(why): count for why, count in ledger.unscored.items()}
        return Figures(
            nodes, assumed, self.known.groups, self._expired, bindings, unscored, ledger.splits, faults, *held
        )

    def reservations_of(self, uids: Iterable[str]) -> dict[str, tuple[str, tuple[Reservation, ...]]]:
        """By uid, the node that has the pod, as reported or assumed, and its reservations there."""
        with self._lock:
            self._nodes.show("")
            nodes = {uid: node for uid in uids if (node := self._nodes.locations.node(uid)) is not None}
            views = {node: self._nodes.view(node) for node in {*nodes.values()}}
        found = {uid: (node, view.occupancy.members_of(uid)) for uid, node in nodes.items() if (view := views[node])}
        return {uid: (node, tuple(there)) for uid, (node, there) in found.items() if there}

    def group_on_node(self, uid: str) -> str:
        """NAMESPACE/name of the pod's group as its node reports it or is expected to; empty where it is not known."""
        _, there = self.reservations_of([uid]).get(uid, ("", ()))
        return next((reservation.group for reservation in there if reservation.group), "")

    def group_size(self, group: str) -> int:
        """Pods of the group that are placed, anywhere."""
        with self._lock:
            self._nodes.show("")
            return self._nodes.groups.total(group)

    def unscored(self, uids: Iterable[str]) -> dict[str, str]:
        """By uid, why kube-scheduler did not ask for a pod's scores, of those of which that is known."""
        with self._lock:
            return self._history.reasons_unscored(uids)

    def held(self) -> dict[str, dict[NumaPlace, Demand]]:
        """What is held for groups whose pods wait for a node, by place."""
        with self._lock:
            holds = self._nodes.group_holds
            return {group: holds.held(group, self._nodes.assumed) for group in holds.groups()}

    def held_for(self, group: str) -> dict[NumaPlace, Demand]:
        """What is held for one group whose pods wait for a node, by place."""
        with self._lock:
            return self._nodes.group_holds.held(group, self._nodes.assumed)

    def story(self, namespace: str, name: str) -> PodStory | None:
        """What is known of a pod by its name, for `extender.views.explain`: of the one that the API server has, else of
        the last one that had this name; None when nothing is.
        """
        with self._lock:
            uid, rows = self._history.uid(namespace, name), self._ledger.rows
            all_rows = () if uid in rows else tuple(rows.values())
        # Of all pods of the cluster: no thread waits for the lock meanwhile.
        uid = next((row.uid for row in all_rows if row.name == name and row.namespace == namespace), uid)
        with self._lock:
            story = self._history.story(uid, self._nodes.held(uid), self.clock())
            row = self._ledger.rows.get(uid)
            story = replace(story, row=row, gone=row is None and self._ledger.listed)
        return story if story.known else None
