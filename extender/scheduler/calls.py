"""kube-scheduler's calls, measured and counted: from a request's body to an answer, without Flask.

Scheduling is serial, so each millisecond here is one for every pod of the cluster, opted in or not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from extender.scheduler.metrics import Metrics
from extender.scheduler.pod_body import BadRequest
from extender.scheduler.verbs import VERBS, Verbs
from numakin.placement.model.errors import PlacementError
from numakin.process.log import Log

BUSY_S = 0.2
"""Since the latest call: kube-scheduler takes 5 to 20 ms for a pod."""

_log = Log("scheduler")


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """status: of HTTP. body: JSON. after: what is left to be done once it is sent; raises nothing."""

    status: int
    body: bytes
    after: Callable[[], None] | None = None


class SchedulerCall:
    """One verb on one connection. Raises nothing. asked: told of each call, by time.perf_counter."""

    def __init__(self, verb: str, verbs: Verbs, metrics: Metrics, asked: Callable[[float], None]) -> None:
        self._verb, self._verbs, self._metrics, self._asked = verb, verbs, metrics, asked
        self._answer = verbs.table[verb]
        self._seconds, self._answered = metrics.seconds.labels(verb), metrics.requests.labels(verb, "200")

    def __call__(self, body: bytes) -> CallAnswer:
        begin = time.perf_counter()
        self._asked(begin)
        try:
            answered = CallAnswer(200, self._answer(body), self._finish if self._verbs.left is not None else None)
            self._answered.inc()
        except Exception as error:  # noqa: BLE001 - it is answered, logged and counted
            answered = self._fault(error)
            self._metrics.requests.labels(self._verb, str(answered.status)).inc()
        self._seconds.observe(time.perf_counter() - begin)
        return answered

    def _finish(self) -> None:
        try:
            self._verbs.finish()
        except Exception:  # noqa: BLE001 - the caller has its answer
            _log.exception("what was left of a request could not be done", verb=self._verb)

    def _fault(self, error: Exception) -> CallAnswer:
        if isinstance(error, (BadRequest, PlacementError)):
            _log.warning("a request is none that can be answered", verb=self._verb, why=str(error))
            return CallAnswer(400, msgspec.json.encode({"error": str(error)}))
        _log.exception("a request could not be answered", error, verb=self._verb)
        return CallAnswer(500, msgspec.json.encode({"error": "a fault of the extender's own; its log says which"}))


class SchedulerCalls:
    """Makes the calls of one connection, by verb. Thread-safe. verbs: made for each connection."""

    def __init__(self, verbs: Callable[[], Verbs], metrics: Metrics) -> None:
        self._verbs, self._metrics = verbs, metrics
        self._latest = -math.inf

    def __call__(self) -> dict[str, SchedulerCall]:
        verbs = self._verbs()
        return {verb: SchedulerCall(verb, verbs, self._metrics, self._called) for verb in VERBS}

    @property
    def busy(self) -> bool:
        """Whether pods are being scheduled now, one after the other."""
        return time.perf_counter() - self._latest < BUSY_S

    def _called(self, at: float) -> None:
        self._latest = at
