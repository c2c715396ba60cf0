"""Signs of life of a supervised process: it writes a byte now and then, and its supervisor sees how long none came.

A process that is stopped, or hangs with Python's lock held, has not ended: only its silence shows it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

PULSE = "NUMAKIN_PULSE"
"""The environment variable with the descriptor that a process writes to."""

BEAT_S = 2.0
"""Between two bytes."""

SILENT_S = 20.0
"""A process that was silent for so long is of no use any more."""

START_S = 90.0
"""For the first byte, since a busy machine may take long to start a program."""

AWAY_S = 5.0
"""A supervisor that did not check for so long was stopped itself, and so may the process have been."""


class Pulse:
    """The supervisor's end, for all processes of one name one after the other. clock: seconds, monotonic."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, silent_s: float = SILENT_S, start_s: float = START_S
    ) -> None:
        self._clock, self._silent_s, self._start_s = clock, silent_s, start_s
        self._received, self.descriptor = os.pipe()
        os.set_blocking(self._received, False)
        self._last = self._asked = clock()
        self._allowed_s = self._start_s

    def started(self) -> None:
        """A new process has the descriptor now."""
        self._taken()
        self._last = self._asked = self._clock()
        self._allowed_s = self._start_s

    def silent_s(self) -> float | None:
        """How long the process has been silent, once that is too long; None while it is not. To be asked often."""
        now = self._clock()
        away, self._asked = now - self._asked > AWAY_S, now
        if self._taken():
            self._last, self._allowed_s = now, self._silent_s
        elif away:
            self._last = now
        silent_s = now - self._last
        return silent_s if silent_s > self._allowed_s else None

    def _taken(self) -> bool:
        with suppress(BlockingIOError):
            return bool(os.read(self._received, 1 << 12))
        return False


def beat(environment: Mapping[str, str]) -> None:
    """One sign of life; nothing for a process that nobody supervises."""
    descriptor = environment.get(PULSE)
    if descriptor is not None:
        with suppress(OSError):
            os.set_blocking(int(descriptor), False)
            os.write(int(descriptor), b".")
