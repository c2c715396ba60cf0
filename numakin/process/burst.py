"""One call for a burst of events."""

from __future__ import annotations

import time

from numakin.process.loop import Callback, Loop, Timer

QUIET_S = 0.02
WITHIN_S = 0.1


class Burst:
    """Calls back once no event has come for `quiet_s`, and at the latest `within_s` after the first; in seconds."""

    def __init__(self, loop: Loop, callback: Callback, *, quiet_s: float = QUIET_S, within_s: float = WITHIN_S) -> None:
        self._loop, self._callback, self._quiet_s, self._within_s = loop, callback, quiet_s, within_s
        self._timer: Timer | None = None
        self._latest = 0.0

    def event(self) -> None:
        now = time.monotonic()
        if self._timer is None:
            self._latest = now + self._within_s
        else:
            self._timer.cancel()
        self._timer = self._loop.call_later(min(self._quiet_s, self._latest - now), self._over)

    def _over(self) -> None:
        self._timer = None
        self._callback()
