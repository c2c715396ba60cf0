"""kube-scheduler's verbs: functions from a request's body to an answer's."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.ahead import Ahead
from extender.scheduler.metrics import Metrics
from extender.scoring.history import Offer
from extender.scoring.predict import Wanted
from extender.scoring.prepared import Prepared
from extender.scoring.strict import NodeRefusal
from extender.state.pods import PodRow

_log = structlog.get_logger("scheduler")

LOGGED_NODES = 20
"""Nodes that one log line names."""

NEARLY_DONE_S = 0.005
"""So long the event loop waits for scores that a thread is about to have worked out: another thread to wait for them in
its place would have to be woken, and the loop by it. Nobody else is answered meanwhile.
"""

AT_ONCE_BYTES = 128 << 10
"""Of a request that is read on the event loop: 5,000 names take 70 KB, a pod some."""

LOGGED_BEST = 3
"""Of the scores, the best; explain has them all."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """An answer to prioritize that only has to be given."""

    prepared: Prepared
    body: bytes


class Verbs:
    """refuse: filter may refuse nodes. plain: answers to calls of which `wire.plain` holds: most, in microseconds.
    quick: answers that take little and wait for nothing; None where there is none. then: what they leave to be done
    once they are sent, which takes little as well. after: what is to be done once a verb is answered.
    """

    def __init__(self, cluster: Cluster, metrics: Metrics, *, refuse: bool) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._refuse = refuse
        self._last: tuple[bytes, wire.Arguments, Wanted | None] | None = None
        self._ahead: Ahead[_Ready | None] | None = None
        self._promised: deque[Offer] = deque()
        self._passed: bytes | None = None
        self._weighed: bytes | None = None  # the body of the filter call for which nodes were weighed on the event loop
        self.table = {"filter": self.filter, "prioritize": self.prioritize, "preempt": self.preempt}
        self.quick = {
            "prioritize": self._scores_at_once,
            "filter": self._unless_refused if refuse else self._every_node,
        }
        self.then = {"prioritize": self._settle}
        self.after = {"filter": self._work_ahead}
        self.plain = {"filter": self._plain_filter, "prioritize": self._plain_prioritize}

    def filter(self, body: bytes) -> bytes:
        self._ahead = None
        call, want = self._asked(body)
        if want is None:
            return wire.filter_answer(call, wire.FilterRefusals())
        may_refuse, anew = self._refuse and want.strict, self._weighed is not body
        refused = self._cluster.refusals(want, call.names, anew=anew) if may_refuse else {}
        left = [name for name in call.names if name not in refused] if refused else call.names
        if len(left) == 1:
            self._cluster.passed(want, left[0])
        elif not refused:
            self._expect_scores(body)
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

    def _plain_filter(self, body: bytes) -> bytes:
        answer = wire.every_node(body)
        self._passed = body
        return answer

    def _plain_prioritize(self, body: bytes) -> bytes:
        """The bytes that filter has just read are not read again."""
        return wire.NO_SCORES if body == self._passed else wire.no_scores(body)

    def _every_node(self, body: bytes) -> bytes | None:
        answer = wire.several_nodes(body)
        if answer is not None:
            self._expect_scores(body)
        return answer

    def _unless_refused(self, body: bytes) -> bytes | None:
        """None where a node may be refused, or that takes more to know."""
        if self._cluster.busy or len(body) > AT_ONCE_BYTES:
            return None
        call, want = self._asked(body)
        if want is None or call.items is not None or len(call.names) < 2:
            return None
        if want.strict:
            self._weighed = body
            if not self._cluster.refuses_none(want, call.names):
                return None
        self._expect_scores(body)
        return wire.every_node(body)

    def _expect_scores(self, body: bytes) -> None:
        """kube-scheduler asks with the same bytes again, where no other extender filters nodes out."""
        self._ahead = Ahead(body, partial(self._scored, body))

    def _work_ahead(self) -> None:
        if (ahead := self._ahead) is not None:
            ahead.work()

    def _asked(self, body: bytes) -> tuple[wire.Arguments, Wanted | None]:
        """kube-scheduler asks twice for a pod, with the same bytes where no node was filtered out."""
        last = self._last
        if last is not None and last[0] == body:
            return last[1], last[2]
        call = wire.arguments(body)
        want = self._cluster.wanted(call.pod)
        self._last = body, call, want
        return call, want

    def _count(self, pod: PodRow, refused: Mapping[str, NodeRefusal]) -> None:
        for refusal in refused.values():
            self._metrics.refusals.labels(refusal.why).inc()
        _log.info("refused", pod=_named(pod), nodes=sorted(refused)[:LOGGED_NODES], count=len(refused))

    def preempt(self, body: bytes) -> bytes:
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

    def prioritize(self, body: bytes) -> bytes:
        ahead = self._ahead
        ready = ahead.result() if ahead is not None and ahead.body == body else None
        if ready is None or not self._cluster.serves(ready.prepared):
            ready = self._scored(body)
        return wire.NO_SCORES if ready is None else self._promise(ready)

    def _scores_at_once(self, body: bytes) -> bytes | None:
        """What was worked out since filter, or is in a moment; None where it is not, or would be waited for."""
        ahead = self._ahead
        if ahead is not None and ahead.body == body:
            if not ahead.done(NEARLY_DONE_S) or self._cluster.busy:
                return None
            ready = ahead.result()
            if ready is not None and self._cluster.serves(ready.prepared):
                return self._promise(ready)
        if self._cluster.busy or len(body) > AT_ONCE_BYTES:
            return None
        call, want = self._asked(body)
        if want is None:
            return wire.NO_SCORES
        prepared = self._cluster.prepared_at_once(want, call.names)
        return None if prepared is None else self._promise(_ready(call, prepared))

    def _scored(self, body: bytes) -> _Ready | None:
        """None for a pod that has not opted in."""
        call, want = self._asked(body)
        return None if want is None else _ready(call, self._cluster.prepared(want, call.names))

    def _promise(self, ready: _Ready) -> bytes:
        self._settle()
        self._ahead = None
        self._cluster.promise(ready.prepared)
        self._promised.append(ready.prepared.offer)
        return ready.body

    def _settle(self) -> None:
        """Holds and tells what was promised, once."""
        while True:
            try:
                promised = self._promised.popleft()
            except IndexError:  # another thread may have settled it
                return
            self._cluster.settle()
            self._tell(promised)

    def _tell(self, offer: Offer) -> None:
        pod, group, nodes = _named(offer.want.pod), offer.want.group, len(offer.names)
        if offer.kin_hidden:
            self._metrics.kin_hidden.inc()
            _log.warning("kin's nodes were not offered", pod=pod, group=group, nodes=nodes)
        best = {row.node: row.score for row in offer.best(LOGGED_BEST)}
        _log.info("scored", pod=pod, group=group, nodes=nodes, best=best)


def _ready(call: wire.Arguments, prepared: Prepared) -> _Ready:
    return _Ready(prepared, wire.prioritize_answer(call.names, prepared.offer.scores))


def _replaced(named: wire.Victims, pods: Sequence[str]) -> wire.Victims:
    """Each pod that kube-scheduler had not named counts as a broken disruption budget: budgets are not known here, and
    so a node with kube-scheduler's own victims is preferred.
    """
    return wire.Victims(tuple(pods), named.budgets_broken + len(set(pods) - set(named.pods)))


def _named(pod: PodRow) -> str:
    return f"{pod.namespace}/{pod.name}"
