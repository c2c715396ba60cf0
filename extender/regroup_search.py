"""The thread that looks for groups which are cut and could be together. It has time: nobody waits for what it finds."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

from numakin.process.threads import Threaded, Threads

SHARE = 0.05
"""Of its time that the thread may spend on searching: after each piece of work it rests."""

LONGEST_DEFERRED_S = 5.0
"""How long one piece of work is put off while pods are being scheduled."""

NICE = 10

STALE_AFTER_S = 3600.0 + 300.0
"""The longest period, and a while."""

Search = Callable[[Callable[[], None]], None]


class _Stopped(Exception):
    """The search is given up."""


class RegroupSearch(Threaded):
    """search: calls what it is given after each piece of work. every_s: from the end of one search to the next; 0:
    there is none. busy: whether pods are being scheduled.
    """

    def __init__(
        self, search: Search, every_s: float, *, busy: Callable[[], bool] = lambda: False, threads: Threads
    ) -> None:
        self._search, self._every_s, self._busy = search, every_s, busy
        self._began = 0.0
        self._thread = threads.thread("regroup search", self._round, stale_after_s=STALE_AFTER_S)

    def start(self) -> None:
        if self._every_s:
            super().start()

    def _round(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        self._began = time.thread_time()
        with contextlib.suppress(_Stopped):
            self._search(self._pause)
        self._thread.stopping.wait(self._every_s)

    def _pause(self) -> None:
        """Rests for what it has worked."""
        self._thread.progress()
        rest = (time.thread_time() - self._began) * (1 / SHARE - 1)
        latest = time.monotonic() + LONGEST_DEFERRED_S
        stopping = self._thread.stopping.wait(rest)
        while not stopping and self._busy() and time.monotonic() < latest:
            stopping = self._thread.stopping.wait(0.1)
        if stopping:
            raise _Stopped
        self._began = time.thread_time()
