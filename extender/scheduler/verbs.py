"""kube-scheduler's verbs: functions from a request's body to an answer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from extender.cluster import Cluster
from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from extender.scoring.predict import Wanted
from extender.scoring.strict import NodeRefusal
from extender.state.pods import PodRow

_log = structlog.get_logger("scheduler")

LOGGED_NODES = 20
"""Nodes that one log line names."""

LOGGED_BEST = 3
"""Of the scores, the best; explain has them all."""


class Verbs:
    """refuse: filter may refuse nodes. plain: answers to calls of which `wire.plain` holds: most, in microseconds.
    quick: verbs that weigh no node, but the only one that is offered.
    """

    def __init__(self, cluster: Cluster, metrics: Metrics, *, refuse: bool) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._refuse = refuse
        self._last: tuple[bytes, wire.Arguments, Wanted | None] | None = None
        self.table = {"filter": self.filter, "prioritize": self.prioritize, "preempt": self.preempt}
        self.quick = frozenset(() if refuse else ("filter",))
        self.plain = {"filter": wire.every_node, "prioritize": wire.no_scores}

    def filter(self, body: bytes) -> bytes:
        call, want = self._asked(body)
        if want is None:
            return wire.filter_answer(call, wire.FilterRefusals())
        refused = self._cluster.refusals(want, call.names) if self._refuse and want.strict else {}
        left = [name for name in call.names if name not in refused]
        if len(left) == 1:
            # kube-scheduler does not ask for a score where there is no choice; the pod's room is held all the same.
            self._cluster.score(want, left)
        if refused:
            self._count(call.pod, refused)
        return wire.filter_answer(
            call,
            wire.FilterRefusals(
                failed={name: refusal.why for name, refusal in refused.items() if not refusal.hopeless},
                hopeless={name: refusal.why for name, refusal in refused.items() if refusal.hopeless},
            ),
        )

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
        call, want = self._asked(body)
        if want is None:
            return wire.NO_SCORES
        offer = self._cluster.score(want, call.names)
        if offer.kin_hidden:
            self._metrics.kin_hidden.inc()
            _log.warning("kin's nodes were not offered", pod=_named(call.pod), group=want.group, nodes=len(call.names))
        _log.info(
            "scored", pod=_named(call.pod), group=want.group, nodes=len(call.names),
            best={row.node: row.score for row in offer.best(LOGGED_BEST)},
        )  # fmt: skip
        return wire.prioritize_answer(call.names, offer.scores)


def _replaced(named: wire.Victims, pods: Sequence[str]) -> wire.Victims:
    """Each pod that kube-scheduler had not named counts as a broken disruption budget: budgets are not known here, and
    so a node with kube-scheduler's own victims is preferred.
    """
    return wire.Victims(tuple(pods), named.budgets_broken + len(set(pods) - set(named.pods)))


def _named(pod: PodRow) -> str:
    return f"{pod.namespace}/{pod.name}"
