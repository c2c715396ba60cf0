"""Which pods the API server has, where each is expected to run, and what their nodes' enforcers are sent for it.

A pod that was scored is assumed on the node that leads (`scoring.points`); the binding that is then seen settles it.
What the two differ in is counted: it shows whether scores lead kube-scheduler at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from extender import unscored
from extender.planning.replica_counts import ReplicaCount
from extender.scoring.history import History
from extender.scoring.node_table import NodeTable
from extender.scoring.predict import PredictedPlace, Prediction, Wanted, predict
from extender.scoring.prepared import Prepared
from extender.scoring.refused_pods import RefusedPods
from extender.splits import Splits
from extender.state.departed import Departed
from extender.state.faults import Faults
from extender.state.member_facts import tellable, unknown
from extender.state.node_view import Assumption, NodeView
from extender.state.pods import Changes, PodRow
from numakin.placement.decide.request import NO_KIN, Kin
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.parsing import OptIn, opted_in
from numakin.process.brief_wait import BriefWait
from numakin.process.log import Log
from numakin.wire import bounds

AS_ASSUMED, ELSEWHERE, NOT_ASSUMED = "as assumed", "elsewhere", "not assumed"

TRIED_AGAIN_S = 5.0
"""How long the room of a pod is held at most that kube-scheduler gave up before: where it gives up once more for the
same reason, nothing says so. A binding takes 20 to 1,250 ms.
"""

BINDING_S = 660.0
"""How long the room of a pod is held at most that kube-scheduler says it will bind there, once all that it waits for is
there: volumes, for 600 s at most (bindTimeoutSeconds), or devices.
"""

PODS_AT_ONCE = 200
"""Of a list's, 10 us each and more where they opted in: all 150,000 of a large cluster at once would have held up an
answer to kube-scheduler for longer than the second that it waits.
"""

PASSING_S = 1.0
"""How long the binding of a pod may be on its way that filter left one node to."""

_log = Log("cluster")


@dataclass(frozen=True, slots=True)
class Nomination:
    """What a node's enforcer is sent of a pod that was bound to it. numa_nodes empty: only the facts.

    opt_ins: what containers, by name, ask for with what their group's object says, where that is not what they say.
    replicas: of the pod's workload and of the others of its namespace that have members on the node. used_milli: what
    pods of its workload use, 0: not known. scored: whether the pod was scored here, and bound to the node that led.
    """

    node: str
    pod: PodRow
    opt_ins: Mapping[str, OptIn]
    kin: Kin = NO_KIN
    numa_nodes: NumaSet = NumaSet()
    generation: int = 0
    replicas: tuple[ReplicaCount, ...] = ()
    used_milli: int = 0
    scored: bool = False


class BindingLedger:
    """Under the cluster's lock. hold_s: how long an assumption lasts, that of a bound pod once it runs. That of a pod
    that is not bound ends before, when kube-scheduler asks about the pod anew or says that it has given up.

    listed: whether the API server has sent every pod. bindings: of pods that were scored here, by whether they went
    where they were assumed. unscored: pods bound without kube-scheduler having had scores, by reason. splits: pods
    bound to a node without members of their group, though one with members was offered and has room for them.
    """

    def __init__(
        self,
        nodes: NodeTable,
        history: History,
        refused: RefusedPods,
        faults: Faults,
        *,
        clock: Callable[[], float],
        hold_s: float,
    ) -> None:
        self._nodes, self._history, self._refused, self._faults = nodes, history, refused, faults
        self._clock, self._hold_s = clock, hold_s
        self._departed, self._lag, self._plan = Departed(), BriefWait(), BriefWait()
        self._splits = Splits(nodes, history, self.predicted)
        self.rows: dict[str, PodRow] = {}
        self._starting: dict[str, dict[str, None]] = {}  # by node, the pods that are bound there and do not run yet
        self.listed = False
        self.bindings = Counter({AS_ASSUMED: 0, ELSEWHERE: 0, NOT_ASSUMED: 0})
        self.unscored = Counter(dict.fromkeys(unscored.Unscored, 0))
        self.splits = 0
        self._asked_at = -math.inf
        self._passing: dict[str, float] = {}
        self._trying, self._scored = "", set[str]()  # a gang, and its pods that were scored in this try
        self._planned: Collection[str] = ()

    def apply(self, changes: Changes[PodRow]) -> Iterator[list[Nomination]]:
        """In steps, between which the cluster's lock may be given up. Nominations are for the pods that were seen bound
        by this change, in its order. Only the steps are under the lock.
        """
        return self._steps(changes, {row.uid for row in changes.rows} if changes.whole else None)

    def _steps(self, changes: Changes[PodRow], listed: Collection[str] | None) -> Iterator[list[Nomination]]:
        """listed: the uids of all that there are; None: these are not all."""
        if listed is not None:
            self._gone([uid for uid in self.rows if uid not in listed])
            for uid in [uid for uid in self._nodes.locations.workloads() if uid not in listed]:
                self._nodes.locations.forget(uid)
        self._gone(changes.gone)
        for begin in range(0, max(1, len(changes.rows)), PODS_AT_ONCE):
            rows = changes.rows[begin : begin + PODS_AT_ONCE]
            nominations = [each for row in rows if (each := self._seen(row, listed=changes.whole)) is not None]
            self._nodes.unplan(row.uid for row in rows if row.node)
            self._nodes.claim(self.evicted)
            self._lag.news()
            yield nominations
        self.listed |= changes.whole

    def evicted(self, uid: str) -> bool:
        """Whether the pod is being deleted, or is no more."""
        row = self.rows.get(uid)
        return row is None or row.leaving

    def replicas(self, workload: str, node: str = "") -> int:
        """How many of its pods are bound, to the node or to any, and are not being deleted."""
        counts = self._nodes.to_come.counts
        return (counts.on(node, workload) if node else counts.anywhere(workload)).bound

    def asked(self, pod: PodRow) -> None:
        """kube-scheduler asks about the pod: what an earlier answer held for it is over. A gang's pods are asked about
        once each in a try, so all that the try before held is over.

        A pod that the API server does not have is not noted: it ended, and nothing would ever take it out again, or the
        watch is about to show it.
        """
        self._asked_at = self._clock()
        if not self.listed:
            self._nodes.locations.named(pod.uid, pod.workload)
        if self.knows(pod):
            self._passing.pop(pod.uid, None)
            self._tried_again(pod)

    def wait_for(self, want: Wanted, longest_s: float) -> None:
        """A moment, for the watch to show the pod, and who is bound by now, and for a plan that is due: one answer at
        most waits for each plan in vain. Not under the cluster's lock.
        """
        until = self._clock() + longest_s
        self._lag.until(lambda: self._shown(want), longest_s)
        self._plan.until(lambda: not self.awaits_plan(want.pod.uid), until - self._clock())

    def _shown(self, want: Wanted) -> bool:
        """Whether the watch has shown the pod and, for one that may be refused a node, all pods that filter left one
        node to: their room is held only once they are bound.
        """
        if not self.knows(want.pod):
            return False
        now = self._clock()
        return not want.strict or not any(until > now for uid, until in [*self._passing.items()] if uid != want.pod.uid)

    def awaits_plan(self, uid: str) -> bool:
        """Whether the pod comes in the place of one of another template, as in a rolling update, and no plan has
        counted it yet, or none that has all of its group that is about to go: it would be drawn to those.
        """
        pod, holds = self._nodes.waiting.get(uid), self._nodes.group_holds
        return (
            pod is not None
            and not (pod.holds_nothing or pod.own_terms or pod.devices)
            and self._nodes.to_come.templates.replaces(pod.workload)
            and (pod.group in holds.unsettled or not (uid in self._planned or holds.place(uid)))
        )

    def planned(self, uids: Collection[str]) -> None:
        """A plan has counted these pods, all that waited."""
        self._planned = uids
        self._plan.news()

    def pending(self, node: str) -> list[Nomination]:
        """Again the nominations for pods that are bound to the node and that its enforcer has not shown yet."""
        rows = [self.rows[uid] for uid in self._starting.get(node, ())]
        return [nomination for row in rows if (nomination := self._nomination(row)) is not None]

    def facts(self, node: str, pods: Iterable[str] | None) -> list[Nomination]:
        """What the node's enforcer does not know of its members, or has forgotten. pods: uids of those to check; None:
        all that it has, and also what groups' objects say of them, as for an enforcer that begins anew.
        """
        view = self._nodes.pods_view(node)
        if view is None:
            return []
        known = (self.rows.get(uid) for uid in (view.index.pods if pods is None else pods))
        rows = [*tellable(node, (row for row in known if row is not None))]
        due = {row.uid for row in unknown(view, rows)}
        due_rows = [(row, self._nodes.from_group(row) if pods is None or row.uid in due else {}) for row in rows]
        return [self._facts(row, opt_ins) for row, opt_ins in due_rows if opt_ins or row.uid in due]

    def departed(self, node: str) -> list[str]:
        """Members that the node's enforcer still shows and that are no more: it is to be sent their uids now."""
        view = self._nodes.pods_view(node)
        if view is None or not self.listed:
            return []
        return self._departed.due(node, view.index.reported_members, self.rows, self._clock())

    def reported(self, view: NodeView) -> None:
        """The room of pods that have ended is free, though the enforcer still shows them."""
        for uid in self._departed.among(view.index.pods):
            self._nodes.ended(uid, view.name)

    def forget(self, nodes: Iterable[str]) -> None:
        """Nodes that are no more in the cluster."""
        self._departed.forget(nodes)

    def knows(self, pod: PodRow) -> bool:
        """Whether the API server has the pod with these requests: a caller of kube-scheduler's port can invent one.
        Of every pod where there is no API server.
        """
        row = self.rows.get(pod.uid)
        return not self.listed or (row is not None and _requests(row) == _requests(pod))

    def hold(self, place: PredictedPlace, pod: PodRow, node: str, *, bound: bool) -> None:
        room = place.numa_nodes, place.reservations, place.allocations
        private = bool(pod.gang) and not bound
        until = self._until(pod.uid, bound=bound)
        self._nodes.hold(Assumption(pod.uid, node, *room, until, bound, pod.devices, pod.gang, private))

    def _until(self, uid: str, *, bound: bool) -> float:
        tried_before = not bound and (row := self.rows.get(uid)) is not None and row.unscheduled
        return self._clock() + (min(self._hold_s, TRIED_AGAIN_S) if tried_before else self._hold_s)

    def expire(self, now: float) -> int:
        """How many assumptions had their time. Not that of a pod that is bound and does not run yet, whose images may
        take minutes: its node shows it with its first container.
        """
        return self._nodes.expire(now, lambda held: self._renewed(held, now))

    def _renewed(self, held: Assumption, now: float) -> Assumption | None:
        view = self._nodes.pods_view(held.node)
        shown = view is not None and held.pod in view.index.pods
        starts = held.bound and not shown and _starts_on(self.rows.get(held.pod)) == held.node
        return replace(held, until=now + self._hold_s) if starts else None

    def scored(self, ready: Prepared, *, alone: bool = False) -> None:
        """Holds its place on the node that leads, if the API server has the pod; one that is bound keeps its own.

        What is held for a pod of a gang counts for its gang alone: most tries come to nothing. alone: filter has left
        one node, so that no score will be asked for; who filters may only want to know, so that no room is held
        but for a gang.
        """
        self._history.offered(ready.offer)
        pod = ready.offer.want.pod
        if pod.gang:
            self._trying, self._scored = pod.gang, self._scored if pod.gang == self._trying else set()
            self._scored.add(pod.uid)
        held, known = self._nodes.held(pod.uid), self.knows(pod)
        if held is not None and (held.bound or not known):
            return
        self._nodes.release(pod.uid)
        if alone and not pod.gang:
            if known and self.listed:
                self._pass(pod.uid)
            return
        ready = replace(ready, leader=0) if alone else ready  # whatever it scores
        planned = self._nodes.group_holds.place(pod.uid)
        elsewhere = known and planned is not None and ready.node != planned.node
        if elsewhere and not self._nodes.exchange(pod.uid, ready.node):
            self._nodes.missed(pod.uid)
        if known and (place := ready.place(self._faults)) is not None:
            self.hold(place, pod, ready.node, bound=False)

    def _pass(self, uid: str) -> None:
        now = self._clock()
        self._passing = {other: until for other, until in self._passing.items() if until > now}
        self._passing[uid] = now + PASSING_S

    def _given_up(self, pod: PodRow) -> None:
        """The pod is not bound to where it was scored best."""
        held = self._nodes.held(pod.uid)
        if held is not None and not held.bound:
            self._nodes.release(pod.uid)

    def _tried_again(self, pod: PodRow) -> None:
        """What is held for the pod is over, and for all of its gang where this is another try of that: a PodGroup is
        tried in one go, so that it goes on while others of it were scored since and this pod was not.
        """
        held = self._nodes.held(pod.uid)
        holds = held is not None and not held.bound
        goes_on = pod.scheduling_group and pod.gang == self._trying
        if pod.gang and (pod.uid in self._scored if goes_on else holds):
            self._scored = set()
            self._nodes.release_gang(pod.gang)
        elif holds:
            self._nodes.release(pod.uid)

    def predicted(self, view: NodeView, want: Wanted, kin: Kin) -> Prediction | None:
        """None where it can't be computed."""
        with self._faults.contained(view.name):
            return predict(view.machine, view.occupancy, want, kin)
        return None

    def _seen(self, row: PodRow, *, listed: bool) -> Nomination | None:
        """listed: among all that there are, so that it may have been bound long ago."""
        before = self.rows.get(row.uid)
        if row.ended:
            self._gone((row.uid,))
            return None
        self.rows[row.uid] = row
        if self._departed.came_back(row.uid):
            self._nodes.came_back(row.uid, row.node)
        self._noted_starting(before, row)
        self._nodes.to_come.pod_changed(before, row, self._clock(), created=self.listed and not listed)
        if before is not None and not (row.node or before.asks_as(row)):
            self._nodes.waiting.gone(row.uid)  # as it was
            self._nodes.unplan((row.uid,))
        if self._nodes.waiting.seen(row):
            self._nodes.created((row.uid,))
        if opted_in(row.annotations):
            self._nodes.locations.named(row.uid, row.workload)
        refused = row.unscheduled and row.unscheduled != (before.unscheduled if before is not None else 0)
        if row.node or refused:
            self._passing.pop(row.uid, None)
        if row.node:
            self._refused.forget((row.uid,))
        if not row.node:
            if refused:
                self._given_up(row)
                self._nodes.give_up(row.uid)
            elif before is not None and row.nominated != before.nominated:
                self._nominated(row, before.nominated)
            return None
        view, bound_before = self._nodes.pods_view(row.node), before is not None and bool(before.node)
        if row.gang and not bound_before:
            self._nodes.publish(row.gang)
        if not bound_before and not (listed and before is None):
            self._note_unscored(row, before.nominated if before is not None else "")
        # Its node may have shown it first: as a static pod, or where our watch lags.
        if not bound_before and row.phase == "Pending" and not (view is not None and row.uid in view.index.pods):
            assumed = self._nodes.held(row.uid)
            nomination = self._nomination(row)
            self._judge(row, assumed, nomination)
            return nomination
        same = bound_before and before is not None and before.asks_as(row)
        return None if same else self._changed_facts(row, before)

    def _nominated(self, row: PodRow, former: str) -> None:
        """From 1.35 on kube-scheduler nominates the node that it has chosen before it waits for volumes and the like.
        former: the node that was nominated.
        """
        held = self._nodes.held(row.uid)
        if held is None or held.bound or held.private or held.node not in (row.nominated, former):
            return
        until = self._clock() + BINDING_S if held.node == row.nominated else self._until(row.uid, bound=False)
        self._nodes.confirm(replace(held, until=until))

    def _noted_starting(self, before: PodRow | None, after: PodRow | None) -> None:
        """So that an enforcer that comes costs no walk over all pods: thousands come at once."""
        left, there = _starts_on(before), _starts_on(after)
        if left == there:
            return
        if before is not None and left in self._starting:
            self._starting[left].pop(before.uid, None)
            if not self._starting[left]:
                del self._starting[left]
        if after is not None and there:
            self._starting.setdefault(there, {})[after.uid] = None

    def _changed_facts(self, row: PodRow, before: PodRow | None) -> Nomination | None:
        """The facts of a member that runs, or is about to, where its enforcer knows others."""
        view = self._nodes.pods_view(row.node)
        if view is None:
            return None
        rows = tellable(row.node, [row]) if before and row.uid not in view.index.pods else unknown(view, [row])
        return next((self._facts(member, self._nodes.from_group(member)) for member in rows), None)

    def _facts(self, row: PodRow, opt_ins: Mapping[str, OptIn]) -> Nomination:
        """Without a nomination."""
        return Nomination(row.node, row, opt_ins, used_milli=self._nodes.known.uses.get(row.workload, 0))

    def _nomination(self, row: PodRow) -> Nomination | None:
        """Holds the pod's place on its node: the one it was scored for, if that was the node, else decided now."""
        try:
            want = self._nodes.wanted(row)
        except PlacementError:
            return None
        view = self._nodes.pods_view(row.node)
        if view is not None and row.uid in view.index.pods:
            return None
        opt_ins = self._nodes.from_group(row)
        if want is None:
            return self._facts(row, opt_ins) if opt_ins else None
        self._nodes.show(row.gang)
        held = self._nodes.held(row.uid)
        with self._nodes.yielding(want, gang=row.gang), self._nodes.released(row.uid):
            kin = self._nodes.kins((row.node,), want).of(row.node)
            view = self._nodes.view(row.node)
            generation, replicas = view.generation if view else 0, tuple(self._replicas(row, view))
        facts = replace(self._facts(row, opt_ins), kin=kin, generation=generation, replicas=replicas)
        if held is not None and held.node == row.node:
            self._nodes.confirm(replace(held, bound=True, until=self._clock() + self._hold_s))
            return replace(facts, numa_nodes=held.numa_nodes, scored=not held.bound)
        self._nodes.release(row.uid)
        if view is None:
            return facts
        prediction = self.predicted(view, want, kin)
        place = prediction.place if prediction is not None else None
        if place is None:
            return facts
        self.hold(place, row, row.node, bound=True)
        return replace(facts, numa_nodes=place.numa_nodes)

    def _replicas(self, row: PodRow, view: NodeView | None) -> Iterator[ReplicaCount]:
        """How many replicas a node should expect of the workloads near the pod, its own first, and of those that have
        left it.
        """
        namespace, counts = f"{row.namespace}/", self._nodes.to_come.counts
        here = view.occupancy.directory.placed if view is not None else {}
        others = sorted(name for name in here if name.startswith(namespace))
        names = dict.fromkeys((row.workload, *others, *counts.left(row.node, row.namespace)))
        return (counts.on(row.node, name) for name in islice(names, bounds.REPLICA_COUNTS))

    def _judge(self, row: PodRow, assumed: Assumption | None, nomination: Nomination | None) -> None:
        """Counts how the binding of a pod that was scored here compares with what was assumed."""
        offer = self._history.offer(row.uid)
        if offer is None or nomination is None:
            return
        pod = f"{row.namespace}/{row.name}"
        as_assumed = assumed is not None and assumed.node == row.node
        if assumed is None:
            self.bindings[NOT_ASSUMED] += 1
        elif as_assumed:
            self.bindings[AS_ASSUMED] += 1
        else:
            self.bindings[ELSEWHERE] += 1
            _log.info("bound elsewhere than assumed", pod=pod, node=row.node, assumed=assumed.node)
        if node := self._splits.had_room(row, offer, nomination.kin, as_assumed=as_assumed):
            self.splits += 1
            _log.warning(
                "group split though a node had room", pod=pod, group=offer.want.group, node=row.node, room=node
            )

    def _note_unscored(self, row: PodRow, nominated: str) -> None:
        """Counts a binding for which kube-scheduler had nothing to choose from, as far as it asks here at all."""
        offer = self._history.offer(row.uid)
        if not opted_in(row.annotations) or (offer is not None and len(offer.names) > 1):
            return
        reason = unscored.reason(row, nominated or row.nominated, offered_one=offer is not None)
        self._history.unscored(row.namespace, row.name, row.uid, unscored.SENTENCES[reason])
        if self._clock() - self._asked_at <= unscored.ASKS_HERE_S:
            self.unscored[reason] += 1
            _log.info("bound without scores", pod=f"{row.namespace}/{row.name}", node=row.node, why=str(reason))

    def _gone(self, uids: Iterable[str]) -> None:
        uids = list(uids)
        self._departed.ended(uids)
        self._refused.forget(uids)
        for uid in uids:
            row = self.rows.pop(uid, None)
            self._noted_starting(row, None)
            self._passing.pop(uid, None)
            self._nodes.to_come.pod_changed(row, None, self._clock())
            self._nodes.release(uid)
            self._nodes.locations.forget(uid)
            self._nodes.waiting.gone(uid)
            self._nodes.unplan((uid,))
            if row is not None and row.node:
                self._nodes.ended(uid, row.node)


def _starts_on(row: PodRow | None) -> str:
    """The node that it is bound to and does not run on yet; empty: there is none."""
    return row.node if row is not None and row.phase == "Pending" else ""


def _requests(pod: PodRow) -> tuple[object, ...]:
    return pod.namespace, pod.name, pod.gang, pod.containers, dict(pod.requests), dict(pod.limits)
