"""kube-scheduler's verbs: functions from a request's body to an answer's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from extender.scoring.history import Offer
from extender.scoring.predict import Wanted
from extender.scoring.prepared import Prepared
from extender.scoring.strict import NodeRefusal
from extender.state.pods import PodRow
from numakin.process.log import Log

VERBS = ("filter", "prioritize", "preempt")

LOGGED_NODES = 20
"""Nodes that one log line names."""

LOGGED_BEST = 3
"""Of the scores, the best; explain has them all."""

_log = Log("scheduler")


@dataclass(frozen=True, slots=True)
class _Ready:
    """An answer to prioritize that only has to be given."""

    prepared: Prepared
    body: bytes


class Verbs:
    """Of one connection, on its thread. refuse: filter may refuse nodes. left: what is to be done, by `finish`, once
    the latest answer is sent; None where that is nothing.
    """

    def __init__(self, cluster: Cluster, metrics: Metrics, *, refuse: bool) -> None:
        self._cluster, self._metrics, self._refuse = cluster, metrics, refuse
        self._last: tuple[bytes, wire.Arguments, Wanted | None] | None = None
        self._ahead: tuple[bytes, _Ready | None] | None = None
        self.left: Callable[[], None] | None = None
        self.table = {"filter": self.filter, "prioritize": self.prioritize, "preempt": self.preempt}

    def finish(self) -> None:
        """Does what is left."""
        left, self.left = self.left, None
        if left is not None:
            left()

    def filter(self, body: bytes) -> bytes:
        self.left = self._ahead = self._last = None
        if wire.plain(body):
            return wire.every_node(body)
        small = len(body) <= wire.PLAIN_BYTES
        if small and not self._refuse and (answer := wire.several_nodes(body)) is not None:
            self.left = partial(self._work_ahead, body)
            return answer
        call, want = self._asked(body)
        if want is None:
            return wire.filter_answer(call, wire.FilterRefusals())
        refused = self._cluster.refusals(want, call.names) if self._refuse and want.strict else {}
        left = [name for name in call.names if name not in refused] if refused else call.names
        if len(left) == 1:
            self._cluster.passed(want, left[0])
        elif small and not refused:
            self.left = partial(self._work_ahead, body)
        if refused:
            self._count(call.pod, refused)
        elif call.items is None:
            return wire.every_node(body)
        return wire.filter_answer(
            call,
            wire.FilterRefusals(
                failed={name: refusal.why for name, refusal in refused.items() if not refusal.hopeless},
                hopeless={name: refusal.why for name, refusal in refused.items() if refusal.hopeless},
            ),
        )

    def prioritize(self, body: bytes) -> bytes:
        self.left = None
        if wire.plain(body):
            return wire.no_scores(body)
        ready = self._ready(body)
        self._ahead = self._last = None
        if ready is None:
            return wire.NO_SCORES
        self._cluster.give(ready.prepared)
        self.left = partial(self._after_scores, ready.prepared.offer)
        return ready.body

    def preempt(self, body: bytes) -> bytes:
        self.left = None
        call = wire.preempt_arguments(body)
        want = self._cluster.wanted(call.pod)
        if want is None or not (self._refuse and want.strict):
            return wire.preempt_answer(call.victims)
        chosen = self._cluster.victims(want, {node: victims.pods for node, victims in call.victims.items()})
        changed = [node for node, pods in chosen.items() if set(pods) != set(call.victims[node].pods)]
        _log.info(
            "preempted", pod=_named(call.pod), nodes=len(call.victims), helpful=len(chosen),
            other_victims_on=sorted(changed)[:LOGGED_NODES],
        )  # fmt: skip
        return wire.preempt_answer({node: _replaced(call.victims[node], pods) for node, pods in chosen.items()})

    def _work_ahead(self, body: bytes) -> None:
        """What prioritize will ask: kube-scheduler has its own plugins weigh the nodes in between, and asks with the
        same bytes where no other extender filters nodes out. What can't be worked out is told when it asks.
        """
        with suppress(Exception):
            self._ahead = body, self._scored(body)

    def _ready(self, body: bytes) -> _Ready | None:
        """None for a pod that has not opted in."""
        if self._ahead is not None and self._ahead[0] == body:
            ready = self._ahead[1]
            if ready is None or self._cluster.serves(ready.prepared):
                return ready
        return self._scored(body)

    def _scored(self, body: bytes) -> _Ready | None:
        call, want = self._asked(body)
        if want is None:
            return None
        prepared = self._cluster.prepared(want, call.names)
        return _Ready(prepared, wire.prioritize_answer(call.names, prepared.offer.scores))

    def _asked(self, body: bytes) -> tuple[wire.Arguments, Wanted | None]:
        """kube-scheduler asks twice in a try, with the same bytes where no node was filtered out; in the next try they
        may ask for something else, as the group's object says.
        """
        if self._last is not None and self._last[0] == body:
            return self._last[1:]
        call = wire.arguments(body)
        asked = call, self._cluster.wanted(call.pod)
        # Node objects, of which a body has megabytes, are not held for the next call.
        self._last = (body, *asked) if len(body) <= wire.PLAIN_BYTES else None
        return asked

    def _count(self, pod: PodRow, refused: Mapping[str, NodeRefusal]) -> None:
        for refusal in refused.values():
            self._metrics.refusals.labels(refusal.why).inc()
        _log.info("refused", pod=_named(pod), nodes=sorted(refused)[:LOGGED_NODES], count=len(refused))

    def _after_scores(self, offer: Offer) -> None:
        self._cluster.refresh()
        self._tell(offer)

    def _tell(self, offer: Offer) -> None:
        pod, group, nodes = _named(offer.want.pod), offer.want.group, len(offer.names)
        if offer.kin_hidden:
            self._metrics.kin_hidden.inc()
            _log.warning("kin's nodes were not offered", pod=pod, group=group, nodes=nodes)
        best = {row.node: row.score for row in offer.best(LOGGED_BEST)}
        _log.info("scored", pod=pod, group=group, nodes=nodes, best=best)


def _replaced(named: wire.Victims, pods: Sequence[str]) -> wire.Victims:
    """Each pod that kube-scheduler had not named counts as a broken disruption budget: budgets are not known here, and
    so a node with kube-scheduler's own victims is preferred.
    """
    return wire.Victims(tuple(pods), named.budgets_broken + len(set(pods) - set(named.pods)))


def _named(pod: PodRow) -> str:
    return f"{pod.namespace}/{pod.name}"
