"""The cluster as the extender knows it: the one mutable object of the program.

Enforcers' reports, the API server's watch and kube-scheduler's questions meet here, each on its own thread. Whatever is
kept is an immutable value, swapped whole under one lock; answers are computed outside it, on the values taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from extender.cluster.explain import explained, node_row
from extender.cluster.groups import Member, group_row
from extender.cluster.history import History, Offer, Row
from extender.cluster.kinship import Groups, kin_on
from extender.cluster.pods import PodChanges, PodRow
from extender.cluster.predict import Wanted, predict, wanted
from extender.cluster.quality import age_factor, integer_scores
from extender.cluster.view import Assumption, NodeView, Refused, Report
from placement.cpuset import NumaSet
from placement.decide import Kin
from placement.errors import PlacementError


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. report_timeout: silence after which a node is not live. hold: how long an assumption lasts."""

    report_timeout: float = 60.0
    hold: float = 30.0
    elsewhere_closeness: float = 0.0


@dataclass(frozen=True, slots=True)
class Promise:
    """What a node's enforcer is told of a pod that was bound to it. numa_nodes empty: only the facts."""

    node: str
    want: Wanted
    kin: Kin
    numa_nodes: NumaSet
    generation: int


@dataclass(frozen=True, slots=True)
class Sight:
    """A node's view with what passes with time. age: seconds since its enforcer was last heard."""

    view: NodeView
    age: float
    connected: bool


class Cluster:
    """Thread-safe. clock: seconds, monotonic."""

    def __init__(self, settings: Settings = Settings(), clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.clock = clock
        self._lock = Lock()
        self._views: dict[str, NodeView] = {}
        self._heard: dict[str, float] = {}
        self._connected: set[str] = set()
        self._groups = Groups()
        self._held: dict[str, Assumption] = {}
        self._pods: dict[str, PodRow] = {}
        self._history = History()

    # What enforcers tell.

    def view(self, node: str) -> NodeView | None:
        return self._views.get(node)

    def connected(self, node: str) -> None:
        with self._lock:
            self._connected.add(node)
            self._heard[node] = self.clock()

    def disconnected(self, node: str) -> None:
        """Its last report stays, and ages."""
        with self._lock:
            self._connected.discard(node)

    def heard(self, node: str) -> None:
        self._heard[node] = self.clock()

    def reported(self, view: NodeView, report: Report) -> NodeView | Refused:
        """Applies a report: to the view that is held of this node and session, else to the given fresh one."""
        with self._lock:
            held = self._views.get(view.name)
            if held is not None:
                view = held if held.session == view.session and report.base else replace(view, assumed=held.assumed)
            after = view.applied(report)
            if isinstance(after, Refused):
                return after
            self._swap(after)
            for pod in view.assumed.keys() - after.assumed.keys():
                self._held.pop(pod, None)
            self._history.decided(report.decisions)
            self._heard[view.name] = self.clock()
            return after

    # What kube-scheduler asks.

    def score(self, want: Wanted, names: Iterable[str]) -> Offer:
        """Each offered node's score, 0..10, in their order; room on the best one is held for the pod for a while."""
        uid = want.pod.uid
        with self._lock:
            self._expire()
            sights = [(name, self._sight(name)) for name in names]
            mine = self._held.get(uid)
            if mine is not None:
                self._release(uid)
                sights = [(name, self._sight(name) if name == mine.node else sight) for name, sight in sights]
            kin = [kin_on(name, want, self._groups) for name, _ in sights]
        predictions = [
            predict(sight.view.machine, sight.view.occupancy, want, near) if sight and self._answers(sight) else None
            for (_, sight), near in zip(sights, kin, strict=True)
        ]
        factors = [age_factor(sight.age, self.settings.report_timeout) if sight else 0.0 for _, sight in sights]
        scores = integer_scores([one.score if one else 0.0 for one in predictions], factors)
        rows = tuple(
            Row(name, sight.view if sight else None, near, score, sight.age if sight else 0.0)
            for (name, sight), near, score in zip(sights, kin, scores, strict=True)
        )
        offer = Offer(want, self.clock(), rows)
        best = max(range(len(rows)), key=lambda at: scores[at], default=None)
        with self._lock:
            self._history.offered(offer)
            chosen = predictions[best] if best is not None else None
            if best is not None and chosen is not None and chosen.fits and not (mine and mine.bound):
                self._hold(chosen.assumed(uid, rows[best].node, self.clock() + self.settings.hold, bound=False))
            elif mine is not None:
                self._hold(mine)
        return offer

    def _answers(self, sight: Sight) -> bool:
        return sight.view.registered and sight.age < self.settings.report_timeout

    # What the API server tells.

    def apply_pods(self, changes: PodChanges) -> tuple[Promise, ...]:
        """Promises are for the pods that were seen bound by this change, in its order."""
        with self._lock:
            self._expire()
            if changes.whole:
                listed = {row.uid for row in changes.rows}
                self._gone(uid for uid in list(self._pods) if uid not in listed)
            self._gone(changes.gone)
            promises = [promise for row in changes.rows if (promise := self._seen(row)) is not None]
        return tuple(promises)

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
        if not row.node or row.phase != "Pending" or (before is not None and before.node):
            return None
        return self._promise(row)

    def _promise(self, row: PodRow) -> Promise | None:
        """Holds the pod's place on its node: the one it was scored for, if that was the node, else decided now."""
        try:
            want = wanted(row)
        except PlacementError:
            return None
        view = self._views.get(row.node)
        if want is None or (view is not None and row.uid in view.pods):
            return None
        held = self._held.get(row.uid)
        self._release(row.uid)
        kin = kin_on(row.node, want, self._groups)
        view = self._views.get(row.node)
        if view is None:
            return Promise(row.node, want, kin, NumaSet(), 0)
        if held is None or held.node != row.node:
            prediction = predict(view.machine, view.occupancy, want, kin)
            if not prediction.fits:
                return Promise(row.node, want, kin, NumaSet(), view.reported.generation)
            held = prediction.assumed(row.uid, row.node, 0.0, bound=True)
        self._hold(replace(held, bound=True, until=self.clock() + self.settings.hold))
        return Promise(row.node, want, kin, held.numa_nodes, view.reported.generation)

    def _gone(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._pods.pop(uid, None)
            self._release(uid)

    # The assumed pods; under the lock.

    def _hold(self, one: Assumption) -> None:
        view = self._views.get(one.node)
        if view is None or one.pod in view.pods:
            return
        self._release(one.pod)
        self._held[one.pod] = one
        self._swap(self._views[one.node].assuming(one))

    def _release(self, uid: str) -> None:
        one = self._held.pop(uid, None)
        if one is not None and one.node in self._views:
            self._swap(self._views[one.node].without_assumed(uid))

    def _expire(self) -> None:
        now = self.clock()
        for uid in [uid for uid, one in self._held.items() if one.until <= now]:
            self._release(uid)

    def _swap(self, after: NodeView) -> None:
        self._groups.changed(after.name, self._views.get(after.name), after)
        self._views[after.name] = after

    def _sight(self, name: str) -> Sight | None:
        view = self._views.get(name)
        if view is None:
            return None
        return Sight(view, self.clock() - self._heard.get(name, 0.0), name in self._connected)

    # What people and Prometheus ask.

    def explain(self, namespace: str, name: str) -> dict[str, Any] | None:
        """None when nothing is known of the pod."""
        with self._lock:
            uid = self._history.uid(namespace, name)
            if uid is None:
                return None
            held, now = self._held.get(uid), self.clock()
            return explained(uid, self._history, held, now)

    def nodes(self) -> list[dict[str, Any]]:
        with self._lock:
            sights = [sight for name in sorted(self._views) if (sight := self._sight(name)) is not None]
        return [node_row(one.view, one.age, live=self._answers(one), connected=one.connected) for one in sights]

    def groups(self) -> list[dict[str, Any]]:
        with self._lock:
            where = {group: [self._views[node] for node in self._groups.nodes(group)] for group in self._groups.names()}
            names = self._history.names() | {uid: f"{row.namespace}/{row.name}" for uid, row in self._pods.items()}
        return [group_row(group, list(_members(group, views)), names) for group, views in where.items()]

    def gauges(self) -> Iterator[tuple[str, str, str, dict[str, float]]]:
        """Name, help, label and values, for Prometheus."""
        with self._lock:
            sights = [sight for name in self._views if (sight := self._sight(name)) is not None]
            held = list(self._held.values())
        live = [one for one in sights if self._answers(one)]
        yield (
            "numakin_extender_nodes", "Nodes whose enforcer has reported.", "live",
            {"true": len(live), "false": len(sights) - len(live)},
        )  # fmt: skip
        yield (
            "numakin_extender_assumed_pods", "Pods that hold room until their enforcer reports them.", "bound",
            {"true": sum(one.bound for one in held), "false": sum(not one.bound for one in held)},
        )  # fmt: skip
        yield (
            "numakin_extender_oldest_report_seconds", "The longest silence of an enforcer that counts as live.", "",
            {"": max((one.age for one in live), default=0.0)},
        )  # fmt: skip


def _members(group: str, views: Iterable[NodeView]) -> Iterator[Member]:
    for view in views:
        for key, seat in view.occupancy.seats.items():
            if seat.group == group:
                yield Member(view.name, seat, key not in view.reported.seats)
