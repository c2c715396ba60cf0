"""kube-scheduler's calls, measured and counted: from a request's body to an answer, without Flask.

Scheduling is serial, so each millisecond here is one for every pod of the cluster, opted in or not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import structlog

from extender.scheduler import wire
from extender.scheduler.metrics import Metrics
from extender.scheduler.pod_body import BadRequest
from extender.scheduler.verbs import Verbs
from numakin.placement.model.errors import PlacementError

BUSY_S = 0.2
"""Since the latest call: kube-scheduler takes 5 to 20 ms for a pod."""

_log = structlog.get_logger("scheduler")


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """status: of HTTP. body: JSON. then: to be called once it is sent, on the thread that has sent it; takes little.
    after: to be called then too, on any thread. Both raise nothing.
    """

    status: int
    body: bytes
    then: Callable[[], None] | None = None
    after: Callable[[], None] | None = None


class SchedulerCall:
    """One verb. Its methods raise nothing. at: of the latest call, by time.perf_counter."""

    def __init__(self, verb: str, verbs: Verbs, metrics: Metrics) -> None:
        self.at = -math.inf
        self._verb, self._metrics = verb, metrics
        self._answer, self._plain = verbs.table[verb], verbs.plain.get(verb)
        self._quick, self._then, self._after = verbs.quick.get(verb), verbs.then.get(verb), verbs.after.get(verb)
        self._seconds, self._answered = metrics.seconds.labels(verb), metrics.requests.labels(verb, "200")

    def at_once(self, body: bytes) -> CallAnswer | None:
        """Where that takes little: for a pod that has not opted in, to filter where nothing is refused, to prioritize
        what was worked out ahead or needs few nodes to be weighed (`extender.scoring.weighing.few`). None elsewhere.
        """
        if len(body) > wire.PLAIN_BYTES:
            return None
        if self._plain is not None and wire.plain(body):
            return self._measured(self._plain, body)
        return self._measured(self._quick, body, self._then, self._after) if self._quick is not None else None

    def __call__(self, body: bytes) -> CallAnswer:
        answered = self._measured(self._answer, body, after=self._after or self._then)
        assert answered is not None
        return answered

    def _measured(
        self,
        answer: Callable[[bytes], bytes | None],
        body: bytes,
        then: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> CallAnswer | None:
        """None where that is the answer."""
        begin = self.at = time.perf_counter()
        try:
            content = answer(body)
            if content is None:
                return None
            answered = CallAnswer(200, content, then, after)
            self._answered.inc()
        except Exception as error:  # noqa: BLE001 - it is answered, logged and counted
            answered = self._fault(error)
            self._metrics.requests.labels(self._verb, str(answered.status)).inc()
        self._seconds.observe(time.perf_counter() - begin)
        return answered

    def _fault(self, error: Exception) -> CallAnswer:
        if isinstance(error, (BadRequest, PlacementError)):
            _log.warning("a request is none that can be answered", verb=self._verb, why=str(error))
            return CallAnswer(400, msgspec.json.encode({"error": str(error)}))
        _log.error("a request could not be answered", verb=self._verb, exc_info=error)
        return CallAnswer(500, msgspec.json.encode({"error": "a fault of the extender's own; its log says which"}))


def scheduler_calls(verbs: Verbs, metrics: Metrics) -> dict[str, SchedulerCall]:
    """By verb."""
    return {verb: SchedulerCall(verb, verbs, metrics) for verb in verbs.table}


def busy(calls: Mapping[str, SchedulerCall]) -> bool:
    """Whether pods are being scheduled now, one after the other."""
    return time.perf_counter() - max(call.at for call in calls.values()) < BUSY_S
