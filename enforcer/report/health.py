"""How the enforcer is, for the extender's readers: sent when it changes, and now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from process.threads import Standing
from proto import bounds
from proto import report_pb2 as pb

EVERY_S = 30.0
"""Seconds after which it is sent though nothing has changed."""


class HealthNews:
    """Of one stream. collector: by which traffic is seen. runtime: the connection to it, in words."""

    def __init__(
        self,
        collector: Callable[[], str],
        runtime: Callable[[], str],
        standings: Callable[[], Sequence[Standing]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collector, self._runtime, self._standings, self._clock = collector, runtime, standings, clock
        self._sent: object = None
        self._due = 0.0

    def begin(self) -> None:
        """A stream begins: nothing has been sent on it."""
        self._sent = None

    def due(self) -> pb.Health | None:
        """What is to be sent now."""
        standings, collector = self._standings()[: bounds.THREADS], self._collector()
        matters = (
            collector,
            [(standing.thread, standing.stale, standing.failures, standing.error) for standing in standings],
        )
        if matters == self._sent and self._clock() < self._due:
            return None
        self._sent, self._due = matters, self._clock() + EVERY_S
        return pb.Health(collector=collector, runtime=self._runtime(), threads=map(_thread, standings))


def _thread(standing: Standing) -> pb.ThreadHealth:
    return pb.ThreadHealth(
        name=standing.thread[: bounds.TEXT_LENGTH],
        since_success_s=standing.since_success_s,
        stale=standing.stale,
        failures=standing.failures,
        error=standing.error[: bounds.TEXT_LENGTH],
    )
