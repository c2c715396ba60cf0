"""Signs of life of a supervised process: it writes a byte now and then, and its supervisor sees how long none came.

A process that is stopped, or hangs with Python's lock held, has not ended: only its silence shows it. One that works
but gets little of the CPUs is silent, too: to start it again would only take more of them.
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

STARVED_SHARE = 0.05
"""A silent process that has used more than this share of a CPU since its last sign works. One that hangs uses some,
too: about 0.002 for each thread that waits for Python's lock, since it looks every 5 ms.
"""


class Pulse:
    """The supervisor's end, for all processes of one name one after the other. clock: seconds, monotonic."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, silent_s: float = SILENT_S, start_s: float = START_S
    ) -> None:
        self._clock, self._silent_s, self._start_s = clock, silent_s, start_s
        self._received, self.descriptor = os.pipe()
        os.set_blocking(self._received, False)
        self.started()

    def started(self) -> None:
        """A new process has the descriptor now."""
        self._taken()
        self._last = self._asked = self._clock()
        self._last_cpu_s = 0.0
        self._allowed_s = self._start_s

    def silent_s(self, cpu_s: Callable[[], float]) -> float | None:
        """How long the process has been silent, once that is too long; None while it is not, or while it is starved: it
        works, but has not had the CPUs for as long as it may be silent. To be asked often.

        cpu_s: what it has used of the CPUs since its start.
        """
        now = self._clock()
        away, self._asked = now - self._asked > AWAY_S, now
        lives = self._taken()
        if lives:
            self._allowed_s = self._silent_s
        if lives or away:
            self._last, self._last_cpu_s = now, cpu_s()
        silent_s = now - self._last
        if silent_s <= self._allowed_s:
            return None
        starved = STARVED_SHARE * silent_s < cpu_s() - self._last_cpu_s < self._allowed_s
        return None if starved else silent_s

    def _taken(self) -> bool:
        with suppress(BlockingIOError):
            return bool(os.read(self._received, 1 << 12))
        return False


def beat(environment: Mapping[str, str]) -> None:
    """One sign of life; nothing for a process without a supervisor."""
    descriptor = environment.get(PULSE)
    if descriptor is not None:
        with suppress(OSError):
            os.set_blocking(int(descriptor), False)
            os.write(int(descriptor), b".")
