"""What the hook last reported of the runtime: whether that has us, and how fresh the proof is. A hook that reports
nothing any more proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from numakin.wire import local_pb2 as local

SILENT_S = 30.0
"""The hook reports every five seconds; one that has not for so long hangs."""


@dataclass(frozen=True, slots=True)
class _Latest:
    """at: when it came, in seconds of the clock."""

    at: float
    confirmed_s_ago: float | None


class Attachment:
    """Written by one thread, read by any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest = _Latest(clock(), None)

    def received(self, message: local.Attachment) -> None:
        ago = message.confirmed_seconds_ago if message.HasField("confirmed_seconds_ago") else None
        self._latest = _Latest(self._clock(), ago)

    @property
    def silent_s(self) -> float:
        """Since the hook last reported."""
        return self._clock() - self._latest.at

    @property
    def confirmed_s_ago(self) -> float | None:
        """Since the runtime last showed that it has us; None where that is not known."""
        latest = self._latest
        return None if latest.confirmed_s_ago is None else latest.confirmed_s_ago + self._clock() - latest.at
