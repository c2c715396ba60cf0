"""The cluster as the extender knows it: the one mutable object of the program.

Enforcers' reports, the API server's watch and kube-scheduler's questions meet here, each on its own thread. Whatever is
kept is an immutable value, swapped whole under one lock; answers are computed outside it, on the values taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import structlog

from extender.cluster.board import Board, Glance, Sight
from extender.cluster.explain import explained
from extender.cluster.history import History, Offer
from extender.cluster.known import Known
from extender.cluster.planner import Planner, Plans
from extender.cluster.pods import NodeChanges, PodChanges, PodRow
from extender.cluster.predict import Prediction, Wanted, opt_ins, predict, wanted
from extender.cluster.quality import integer_scores
from extender.cluster.scoring import holds, weigh
from extender.cluster.sheet import age_factor
from extender.cluster.spec import Specs
from extender.cluster.strict import Refusal, refusal
from extender.cluster.view import Assumption, NodeView, Refused, Report
from placement.cpuset import NumaSet
from placement.decide import Kin
from placement.errors import PlacementError
from placement.optin import OptIn, opted_in
from placement.wishes import Defaults


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. report_timeout: silence after which a node is not live. hold: how long an assumption lasts."""

    report_timeout: float = 60.0
    hold: float = 30.0


NO_KIN = Kin()


@dataclass(frozen=True, slots=True)
class Promise:
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
    by workload, found ones too.
    """

    sights: tuple[Sight, ...]
    assumed: tuple[Assumption, ...]
    names: dict[str, str]
    workloads: dict[str, str]
    groups: dict[str, str]
    expired: int


_log = structlog.get_logger("cluster")

REFUSED = 200
"""Pods refused everywhere that are remembered to be woken; kube-scheduler tries any other again after some minutes."""


class Cluster:
    """Thread-safe. clock: seconds, monotonic."""

    def __init__(self, settings: Settings = Settings(), clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.clock = clock
        self._lock = Lock()
        self._board = Board()
        self._history = History()
        self._planner = Planner()
        self._pods: dict[str, PodRow] = {}
        self._expired = 0
        self._refused: dict[str, Wanted] = {}
        self.asked: Callable[[PodRow], None] = lambda _row: None
        """Hears of each pod that kube-scheduler asks about."""

    # What enforcers tell.

    def view(self, node: str) -> NodeView | None:
        return self._board.view(node)

    def connected(self, node: str) -> None:
        with self._lock:
            self._board.connected(node, self.clock())

    def disconnected(self, node: str) -> None:
        """Its last report stays, and ages."""
        with self._lock:
            self._board.disconnected(node)

    def heard(self, node: str) -> None:
        with self._lock:
            self._board.heard(node, self.clock())

    def reported(self, fresh: NodeView, report: Report) -> NodeView | Refused:
        """Applies a report; `fresh` is the view that a whole one starts from."""
        with self._lock:
            self._history.decided(report.decisions)
            self._history.remembered(report.earlier)
            after = self._board.reported(fresh, report, self.clock())
        if isinstance(after, NodeView):
            # Computed now, on the stream's thread, so that kube-scheduler does not wait for it.
            _ = after.table
        return after

    def welcome(self, node: str) -> tuple[PodRow, ...]:
        """The pods that were refused before and that this node would take now: they are waiting for a word."""
        with self._lock:
            waiting = list(self._refused.values())
            if not waiting:
                return ()
            now = self.clock()
            glances = [self._board.glance((node,), want, now) for want in waiting]
        found = [
            want.pod
            for want, glance in zip(waiting, glances, strict=True)
            for view in glance.cut.fresh(self.settings.report_timeout)
            if view is not None and not refusal(view, want, glance.kins[0])
        ]
        with self._lock:
            return tuple(pod for pod in found if self._refused.pop(pod.uid, None) is not None)

    # What traffic taught.

    @property
    def known(self) -> Known:
        return self._board.known

    def learned(self, known: Known) -> None:
        """From now on it is this by which kin are weighed, and where the groups' members to come are planned. On one
        thread.
        """
        with self._lock:
            now = self.clock()
            sights = [sight for node in self._board if (sight := self._board.sight(node, now)) is not None]
            workloads, specs = self._board.seated.workloads(), self._board.specs
        views = [sight.view for sight in sights if self.live(sight)]
        plans: Plans = {}
        try:
            plans = self._planner.plans(known, views, workloads, specs, now)
        except Exception:  # noqa: BLE001 - without a plan newcomers follow their kin, by what is known now
            _log.exception("not planned")
        with self._lock:
            self._board.known, self._board.plans = known, plans

    @property
    def plans(self) -> Plans:
        return self._board.plans

    # What the operator asks of groups.

    def asked_for(self, specs: Specs) -> tuple[PodRow, ...]:
        """From now on it is this. The pods that were refused everywhere and now ask for something else: they are
        waiting for a word.
        """
        with self._lock:
            self._board.specs = specs
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
        """As a promise has it."""
        if not self._board.specs:
            return {}
        own = opt_ins(pod)
        return {name: one for name, one in opt_ins(pod, self._defaults(pod)).items() if one != own[name]}

    def _defaults(self, pod: PodRow) -> Callable[[str], Defaults]:
        return lambda group: self._board.spec(pod, group).defaults

    # What kube-scheduler asks.

    def score(self, want: Wanted, names: Sequence[str]) -> Offer:
        """Each offered node's score, 0..10, in their order; room on the best one is held for the pod for a while."""
        uid = want.pod.uid
        self.asked(want.pod)
        with self._lock:
            mine = self._board.held(uid)
            glance = self._seen_without(uid, want, names)
        cut, timeout = glance.cut, self.settings.report_timeout
        live = cut.live(timeout)
        weighed = weigh(glance, want, live)
        scores = integer_scores(weighed, age_factor(cut.ages, timeout))
        hidden = bool(names) and glance.kins[0].elsewhere > 0 and not weighed.kin.any()
        offer = Offer(want, self.clock(), names, cut.views, glance.kins, scores, cut.ages, hidden)
        best = offer.foremost(live)
        chosen = predict(best.view.machine, best.view.occupancy, want, best.kin) if best and best.view else None
        with self._lock:
            self._history.offered(offer)
            if mine is not None and mine.bound:
                self._board.hold(mine)
            elif best is not None and chosen is not None and chosen.fits:
                self._hold(chosen, uid, best.node, bound=False)
        return offer

    def refusals(self, want: Wanted, names: Sequence[str]) -> dict[str, Refusal]:
        """The offered nodes that can't align the pod, by fresh data; a node that is not known well is never refused."""
        with self._lock:
            glance = self._seen_without(want.pod.uid, want, names)
        views, held = glance.cut.fresh(self.settings.report_timeout), holds(glance, want).tolist()
        found = {
            name: refusal(view, want, near)
            for name, view, near, fits in zip(names, views, glance.kins, held, strict=True)
            if view is not None and not fits
        }
        refused = {name: one for name, one in found.items() if one is not None}
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
            glance = self._seen_without(want.pod.uid, want, names)
        return [
            name
            for name, view, near in zip(names, glance.cut.fresh(self.settings.report_timeout), glance.kins, strict=True)
            if view is None or not refusal(view, want, near, victims[name])
        ]

    def _seen_without(self, uid: str, want: Wanted, names: Sequence[str]) -> Glance:
        """The nodes as if the pod itself were assumed nowhere. Under the lock."""
        now = self.clock()
        self._expired += self._board.expire(now)
        self._board.release(uid)
        self._board.seated.named(uid, want.pod.workload)
        return self._board.glance(names, want, now)

    def live(self, sight: Sight) -> bool:
        """Whether pods that start there now would be placed."""
        return sight.view.registered and sight.age < self.settings.report_timeout

    # What the API server tells.

    def apply_pods(self, changes: PodChanges) -> tuple[Promise, ...]:
        """Promises are for the pods that were seen bound by this change, in its order."""
        with self._lock:
            self._expired += self._board.expire(self.clock())
            if changes.whole:
                self._gone(self._pods.keys() - {row.uid for row in changes.rows})
            self._gone(changes.gone)
            promises = [promise for row in changes.rows if (promise := self._seen(row)) is not None]
        return tuple(promises)

    def apply_nodes(self, changes: NodeChanges) -> None:
        """Nodes that left the cluster are forgotten; those that the API server never told of are kept."""
        with self._lock:
            self._board.forget(changes.gone)

    def pending(self, node: str) -> tuple[Promise, ...]:
        """Again the promises for pods that are bound to the node and that its enforcer has not shown yet."""
        with self._lock:
            rows = [row for row in self._pods.values() if row.node == node and row.phase == "Pending"]
            found = [self._promise(row) for row in rows]
        return tuple(one for one in found if one is not None)

    def _seen(self, row: PodRow) -> Promise | None:
        before = self._pods.get(row.uid)
        if row.ended:
            self._gone((row.uid,))
            return None
        self._pods[row.uid] = row
        if opted_in(row.annotations):
            self._board.seated.named(row.uid, row.workload)
        newly_bound = row.node and row.phase == "Pending" and (before is None or not before.node)
        return self._promise(row) if newly_bound else None

    def _promise(self, row: PodRow) -> Promise | None:
        """Holds the pod's place on its node: the one it was scored for, if that was the node, else decided now."""
        try:
            want = self.wanted(row)
        except PlacementError:
            return None
        view = self._board.view(row.node)
        if view is not None and row.uid in view.pods:
            return None
        said = self._said(row)
        if want is None:
            return Promise(row.node, row, said) if said else None
        held = self._board.held(row.uid)
        self._board.release(row.uid)
        (kin,) = self._board.kins((row.node,), want)
        view = self._board.view(row.node)
        facts = Promise(row.node, row, said, kin, generation=view.generation if view else 0)
        if view is None:
            return facts
        if held is not None and held.node == row.node:
            self._board.hold(replace(held, bound=True, until=self.clock() + self.settings.hold))
            return replace(facts, numa_nodes=held.numa_nodes)
        prediction = predict(view.machine, view.occupancy, want, kin)
        if not prediction.fits:
            return facts
        self._hold(prediction, row.uid, row.node, bound=True)
        return replace(facts, numa_nodes=prediction.numa_nodes)

    def _hold(self, prediction: Prediction, uid: str, node: str, *, bound: bool) -> None:
        until = self.clock() + self.settings.hold
        self._board.hold(
            Assumption(uid, node, prediction.numa_nodes, prediction.seats, prediction.holdings, until, bound)
        )

    def _gone(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._pods.pop(uid, None)
            self._refused.pop(uid, None)
            self._board.release(uid)
            self._board.seated.forget(uid)

    # What people and Prometheus ask.

    def picture(self) -> Picture:
        with self._lock:
            now = self.clock()
            self._expired += self._board.expire(now)
            sights = [sight for node in sorted(self._board) if (sight := self._board.sight(node, now)) is not None]
            names = self._history.names() | {uid: f"{row.namespace}/{row.name}" for uid, row in self._pods.items()}
            workloads, groups = self._board.seated.workloads(), self.known.groups
            return Picture(tuple(sights), tuple(self._board.assumptions()), names, workloads, groups, self._expired)

    def explain(self, namespace: str, name: str) -> dict[str, Any] | None:
        """None when nothing is known of the pod."""
        with self._lock:
            uid = self._history.uid(namespace, name)
            if uid is None:
                return None
            return explained(uid, self._history, self._board.held(uid), self.clock())
