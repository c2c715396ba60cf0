"""The cluster as the extender knows it: the one mutable object of the program.

Enforcers' reports, the API server's watch and kube-scheduler's questions meet here, each on its own thread. Whatever is
kept is an immutable value, swapped whole under one lock; answers are computed outside it, on the values taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import structlog

from extender.planning.group_planner import GroupPlanner, Plans
from extender.scoring.history import History, Offer, PodStory
from extender.scoring.node_table import CandidateView, NodeState, NodeTable
from extender.scoring.predict import Prediction, Wanted, opt_ins, predict, wanted
from extender.scoring.quality import integer_scores
from extender.scoring.refused_pods import Look, Welcome
from extender.scoring.strict import NodeRefusal, refusal
from extender.scoring.weighing import holds, weigh
from extender.state.column_store import age_factor
from extender.state.departed import Departed
from extender.state.faults import Faults
from extender.state.group_spec import Specs
from extender.state.member_facts import tellable, unknown
from extender.state.node_view import Assumption, NodeView, Report, ReportRefused
from extender.state.pods import NodeChanges, PodChanges, PodRow
from extender.traffic.known import ClusterTraffic
from placement.decide.decide import Kin
from placement.model.cpuset import NumaSet
from placement.model.errors import PlacementError
from placement.optin.options import Defaults
from placement.optin.parsing import OptIn, opted_in


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. report_timeout: silence after which a node is not live. hold: how long an assumption lasts."""

    report_timeout: float = 60.0
    hold: float = 30.0


NO_KIN = Kin()


@dataclass(frozen=True, slots=True)
class Nomination:
    """What a node's enforcer is told of a pod that was bound to it. numa_nodes empty: only the facts.

    said: what containers, by name, ask for with what their group's object says, where that is not what they say.
    """

    node: str
    pod: PodRow
    said: Mapping[str, OptIn]
    kin: Kin = NO_KIN
    numa_nodes: NumaSet = NumaSet()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """The state at one moment, for readers. By pod uid: names, NAMESPACE/NAME; workloads, NAMESPACE/KIND/NAME. groups:
    by workload, found ones too. faults: how often each node could not be weighed.
    """

    nodes: tuple[NodeState, ...]
    assumed: tuple[Assumption, ...]
    names: dict[str, str]
    workloads: dict[str, str]
    groups: dict[str, str]
    expired: int
    faults: Mapping[str, int]


_log = structlog.get_logger("cluster")

REFUSED = 200
"""Pods refused everywhere that are remembered to be woken; kube-scheduler tries any other again after some minutes."""


class Cluster:
    """Thread-safe. clock: seconds, monotonic."""

    def __init__(self, settings: Settings = Settings(), clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.clock = clock
        self._lock = Lock()
        self._node_table = NodeTable()
        self._history = History()
        self._planner = GroupPlanner()
        self._pods: dict[str, PodRow] = {}
        self._departed = Departed()
        self._listed = False
        """Whether the API server has told of every pod."""
        self._nodes: set[str] = set()
        """Those that the API server told of."""
        self._expired = 0
        self.faults = Faults()
        self._refused: dict[str, Wanted] = {}
        self._turn = 0
        self.asked: Callable[[PodRow], None] = lambda _row: None
        """Hears of each pod that kube-scheduler asks about."""

    # What enforcers tell.

    def view(self, node: str) -> NodeView | None:
        return self._node_table.view(node)

    def connected(self, node: str) -> None:
        with self._lock:
            self._node_table.connected(node, self.clock())

    def disconnected(self, node: str) -> None:
        """Its last report stays, and ages."""
        with self._lock:
            self._node_table.disconnected(node)

    def heard(self, node: str) -> None:
        with self._lock:
            self._node_table.heard(node, self.clock())

    def reported(self, fresh: NodeView, report: Report) -> NodeView | ReportRefused:
        """Applies a report; `fresh` is the view that a whole one starts from."""
        with self._lock:
            self._history.decided(report.decisions)
            self._history.remembered(report.earlier)
            after = self._node_table.reported(fresh, report, self.clock())
        if isinstance(after, NodeView):
            # Computed now, on the stream's thread, so that kube-scheduler does not wait for it.
            _ = after.table
        return after

    def welcome(self, nodes: Collection[str]) -> Welcome:
        """The pods that were refused before and that one of these nodes would take now: they wait to be woken."""
        names, now = list(nodes), self.clock()
        with self._lock:
            waiting = list(self._refused.values())
            # Where a look has to end early, the next begins elsewhere.
            self._turn = (self._turn + 1) % max(1, len(waiting))
            waiting = waiting[self._turn :] + waiting[: self._turn]

        def candidates(want: Wanted) -> CandidateView:
            with self._lock:
                return self._node_table.candidates(names, want, now)

        found = Look(candidates, self.settings.report_timeout, self.faults).at(waiting)
        with self._lock:
            pods = tuple(pod for pod in found.pods if self._refused.pop(pod.uid, None) is not None)
        return replace(found, pods=pods)

    # What traffic taught.

    @property
    def known(self) -> ClusterTraffic:
        return self._node_table.known

    def learned(self, known: ClusterTraffic) -> None:
        """From now on it is this by which kin are weighed, and where the groups' members to come are planned. On one
        thread.
        """
        with self._lock:
            now = self.clock()
            nodes = [
                node_state
                for node in self._node_table
                if (node_state := self._node_table.node_state(node, now)) is not None
            ]
            workloads, specs = self._node_table.locations.workloads(), self._node_table.specs
        views = [node_state.view for node_state in nodes if self.live(node_state)]
        plans: Plans = {}
        try:
            plans = self._planner.plans(known, views, workloads, specs, now)
        except Exception:  # noqa: BLE001 - without a plan newcomers follow their kin, by what is known now
            _log.exception("not planned")
        with self._lock:
            self._node_table.known, self._node_table.plans = known, plans

    @property
    def plans(self) -> Plans:
        return self._node_table.plans

    # What the operator asks of groups.

    def asked_for(self, specs: Specs) -> tuple[PodRow, ...]:
        """From now on it is this. The pods that were refused everywhere and now ask for something else: they are
        waiting for a word.
        """
        with self._lock:
            self._node_table.specs = specs
            waiting = list(self._refused.values())
        changed = [want.pod for want in waiting if self.wanted(want.pod) != want]
        with self._lock:
            return tuple(pod for pod in changed if self._refused.pop(pod.uid, None) is not None)

    def wanted(self, pod: PodRow) -> Wanted | None:
        """None for a pod that has not opted in: nearly all are, and they are answered at once.

        BadQuantity when a demand can't be read.
        """
        return wanted(pod, self._defaults(pod)) if opted_in(pod.annotations) else None

    def _said(self, pod: PodRow) -> dict[str, OptIn]:
        """As a nomination has it."""
        if not self._node_table.specs:
            return {}
        own = opt_ins(pod)
        return {name: one for name, one in opt_ins(pod, self._defaults(pod)).items() if one != own[name]}

    def _defaults(self, pod: PodRow) -> Callable[[str], Defaults]:
        return lambda group: self._node_table.spec(pod, group).defaults

    # What kube-scheduler asks.

    def score(self, want: Wanted, names: Sequence[str]) -> Offer:
        """Each offered node's score, 0..10, in their order; room on the best one is held for the pod for a while."""
        uid = want.pod.uid
        self.asked(want.pod)
        with self._lock:
            mine = self._node_table.held(uid)
            candidates = self._seen_without(uid, want, names)
        cut, timeout = candidates.cut, self.settings.report_timeout
        live = cut.live(timeout)
        weighed = weigh(candidates, want, live, self.faults)
        scores = integer_scores(weighed, age_factor(cut.ages, timeout))
        hidden = bool(names) and candidates.kins[0].elsewhere > 0 and not weighed.kin.any()
        offer = Offer(want, self.clock(), names, cut.views, candidates.kins, scores, cut.ages, hidden)
        best = offer.foremost(live)
        chosen = self._predicted(best.view, want, best.kin) if best and best.view else None
        with self._lock:
            self._history.offered(offer)
            if mine is not None and mine.bound:
                self._node_table.hold(mine)
            elif best is not None and chosen is not None and chosen.fits:
                self._hold(chosen, uid, best.node, bound=False)
        return offer

    def refusals(self, want: Wanted, names: Sequence[str]) -> dict[str, NodeRefusal]:
        """The offered nodes that can't align the pod, by fresh data; a node that is not known well is never refused."""
        with self._lock:
            candidates = self._seen_without(want.pod.uid, want, names)
        views, held = candidates.cut.fresh(self.settings.report_timeout), holds(candidates, want, self.faults).tolist()
        refused = {
            name: why
            for name, view, near, fits in zip(names, views, candidates.kins, held, strict=True)
            if view is not None and not fits and (why := self._refusal(view, want, near)) is not None
        }
        with self._lock:
            self._refused.pop(want.pod.uid, None)
            if len(refused) == len(names):
                self._refused[want.pod.uid] = want
            if len(self._refused) > REFUSED:
                del self._refused[next(iter(self._refused))]
        return refused

    def helpful(self, want: Wanted, victims: Mapping[str, Sequence[str]]) -> list[str]:
        """The nodes on which evicting these pods (by uid) lets the pod in, or too little is known to say no."""
        names = list(victims)
        with self._lock:
            candidates = self._seen_without(want.pod.uid, want, names)
        return [
            name
            for name, view, near in zip(
                names, candidates.cut.fresh(self.settings.report_timeout), candidates.kins, strict=True
            )
            if view is None or not self._refusal(view, want, near, victims[name])
        ]

    def _refusal(self, view: NodeView, want: Wanted, kin: Kin, without: Sequence[str] = ()) -> NodeRefusal | None:
        """None too where it can't be told."""
        with self.faults.contained(view.name):
            return refusal(view, want, kin, without)
        return None

    def _predicted(self, view: NodeView, want: Wanted, kin: Kin) -> Prediction | None:
        """None where it can't be told."""
        with self.faults.contained(view.name):
            return predict(view.machine, view.occupancy, want, kin)
        return None

    def _seen_without(self, uid: str, want: Wanted, names: Sequence[str]) -> CandidateView:
        """The nodes as if the pod itself were assumed nowhere. Under the lock."""
        now = self.clock()
        self._expired += self._node_table.expire(now)
        self._node_table.release(uid)
        self._node_table.locations.named(uid, want.pod.workload)
        return self._node_table.candidates(names, want, now)

    def live(self, node_state: NodeState) -> bool:
        """Whether pods that start there now would be placed."""
        return node_state.view.registered and node_state.age < self.settings.report_timeout

    # What the API server tells.

    def apply_pods(self, changes: PodChanges) -> tuple[Nomination, ...]:
        """Nominations are for the pods that were seen bound by this change, in its order."""
        with self._lock:
            self._expired += self._node_table.expire(self.clock())
            if changes.whole:
                self._listed = True
                self._gone(self._pods.keys() - {row.uid for row in changes.rows})
            self._gone(changes.gone)
            nominations = [nomination for row in changes.rows if (nomination := self._seen(row)) is not None]
        return tuple(nominations)

    def apply_nodes(self, changes: NodeChanges) -> None:
        """Nodes that left the cluster are forgotten; those that the API server never told of are kept."""
        named = {row.name for row in changes.rows}
        with self._lock:
            gone = set(changes.gone) | (self._nodes - named if changes.whole else set())
            self._nodes = (self._nodes - gone) | named
            self._node_table.forget(gone)
            self._departed.forget(gone)
        self.faults.forget(gone)

    def pending(self, node: str) -> tuple[Nomination, ...]:
        """Again the nominations for pods that are bound to the node and that its enforcer has not shown yet."""
        with self._lock:
            rows = [row for row in self._pods.values() if row.node == node and row.phase == "Pending"]
            found = [self._nomination(row) for row in rows]
        return tuple(one for one in found if one is not None)

    def facts(self, node: str, pods: Iterable[str] | None = None) -> tuple[Nomination, ...]:
        """What the node's enforcer does not know of its members, or has forgotten. pods: uids of those to look at;
        None: all that it has, and also what groups' objects say of them, as for an enforcer that begins anew.
        """
        with self._lock:
            view = self._node_table.view(node)
            if view is None:
                return ()
            known = (self._pods.get(uid) for uid in (view.pods if pods is None else pods))
            rows = [*tellable(node, (row for row in known if row is not None))]
            due = [row.uid for row in unknown(view, rows)]
            found = [(row, self._said(row) if pods is None or row.uid in due else {}) for row in rows]
        return tuple(Nomination(node, row, said) for row, said in found if said or row.uid in due)

    def _seen(self, row: PodRow) -> Nomination | None:
        before = self._pods.get(row.uid)
        if row.ended:
            self._gone((row.uid,))
            return None
        self._pods[row.uid] = row
        if opted_in(row.annotations):
            self._node_table.locations.named(row.uid, row.workload)
        newly_bound = row.node and row.phase == "Pending" and (before is None or not before.node)
        if newly_bound:
            return self._nomination(row)
        return self._news(row, before) if row.node and (before is None or not before.asks_as(row)) else None

    def _news(self, row: PodRow, before: PodRow | None) -> Nomination | None:
        """The facts of a member that runs, or is about to, where its enforcer knows others."""
        view = self._node_table.view(row.node)
        if view is None:
            return None
        rows = tellable(row.node, [row]) if before and row.uid not in view.pods else unknown(view, [row])
        return next((Nomination(row.node, one, self._said(one)) for one in rows), None)

    def _nomination(self, row: PodRow) -> Nomination | None:
        """Holds the pod's place on its node: the one it was scored for, if that was the node, else decided now."""
        try:
            want = self.wanted(row)
        except PlacementError:
            return None
        view = self._node_table.view(row.node)
        if view is not None and row.uid in view.pods:
            return None
        said = self._said(row)
        if want is None:
            return Nomination(row.node, row, said) if said else None
        held = self._node_table.held(row.uid)
        self._node_table.release(row.uid)
        (kin,) = self._node_table.kins((row.node,), want)
        view = self._node_table.view(row.node)
        facts = Nomination(row.node, row, said, kin, generation=view.generation if view else 0)
        if view is None:
            return facts
        if held is not None and held.node == row.node:
            self._node_table.hold(replace(held, bound=True, until=self.clock() + self.settings.hold))
            return replace(facts, numa_nodes=held.numa_nodes)
        prediction = self._predicted(view, want, kin)
        if prediction is None or not prediction.fits:
            return facts
        self._hold(prediction, row.uid, row.node, bound=True)
        return replace(facts, numa_nodes=prediction.numa_nodes)

    def _hold(self, prediction: Prediction, uid: str, node: str, *, bound: bool) -> None:
        until = self.clock() + self.settings.hold
        self._node_table.hold(
            Assumption(uid, node, prediction.numa_nodes, prediction.reservations, prediction.allocations, until, bound)
        )

    def departed(self, node: str) -> list[str]:
        """Members that the node's enforcer still shows and that are no more: it is to be told so now."""
        with self._lock:
            view = self._node_table.view(node)
            if view is None or not self._listed:
                return []
            return self._departed.due(node, view.reported_members, self._pods, self.clock())

    def _gone(self, uids: Iterable[str]) -> None:
        uids = list(uids)
        self._departed.ended(uids)
        for uid in uids:
            self._pods.pop(uid, None)
            self._refused.pop(uid, None)
            self._node_table.release(uid)
            self._node_table.locations.forget(uid)

    # What people and Prometheus ask.

    def draft(self) -> Cluster:
        """A cluster of its own that begins as this one is now, to try things out: nothing that is done there is held,
        learned, counted or remembered here.
        """
        draft = Cluster(self.settings, self.clock)
        with self._lock:
            contents, draft._pods = self._node_table.contents(), dict(self._pods)
        draft._node_table = NodeTable.of(contents)
        return draft

    def picture(self) -> Picture:
        with self._lock:
            now = self.clock()
            self._expired += self._node_table.expire(now)
            nodes = [
                node_state
                for node in sorted(self._node_table)
                if (node_state := self._node_table.node_state(node, now)) is not None
            ]
            names = self._history.names() | {uid: f"{row.namespace}/{row.name}" for uid, row in self._pods.items()}
            workloads, groups = self._node_table.locations.workloads(), self.known.groups
            assumed, faults = tuple(self._node_table.assumptions()), self.faults.counts
            return Picture(tuple(nodes), assumed, names, workloads, groups, self._expired, faults)

    def story(self, namespace: str, name: str) -> PodStory | None:
        """What is known of a pod by its name, for `extender.views.explain`; None when nothing is."""
        with self._lock:
            uid = self._history.uid(namespace, name)
            if uid is None:
                return None
            offer, decisions = self._history.offer(uid), self._history.decisions(uid)
            return (
                PodStory(uid, offer, decisions, self._node_table.held(uid), self.clock())
                if offer or decisions
                else None
            )
