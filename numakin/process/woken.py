"""A supervised thread that works when it is woken, and after a while of its own, for a share of its time at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from numakin.process.threads import IDLE, IDLE_S, Threaded, Threads

Work = Callable[[], float | None]
"""One round. It returns after how many seconds the next is due though nothing wakes the thread; None: not before."""


class WokenThread(Threaded):
    """share: of its time that the thread may work; after each round it rests for the other part. first_s: after how
    many seconds the first round is due though nothing wakes the thread; None: not before.
    """

    def __init__(self, name: str, work: Work, *, share: float, first_s: float | None = None, threads: Threads) -> None:
        self._work, self._share, self._due_s = work, share, first_s
        self._woken = threading.Event()
        self._thread = threads.thread(name, self._round, wake=self._woken.set)

    def wake(self) -> None:
        """Never waits; however often before the next round, it is one."""
        self._woken.set()

    def _round(self) -> object:
        woken = self._woken.wait(IDLE_S if self._due_s is None else self._due_s)
        if self._thread.stopping.is_set() or not (woken or self._due_s is not None):
            return IDLE
        self._woken.clear()
        began = time.monotonic()
        try:
            self._due_s = self._work()
        except BaseException:
            self.wake()  # what it was woken for is still to be done
            raise
        rest_s = (time.monotonic() - began) * (1 / self._share - 1)
        self._thread.stopping.wait(rest_s)
        if self._due_s is not None:
            self._due_s = max(0.0, self._due_s - rest_s)
        return None
