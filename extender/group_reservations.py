"""The thread that plans where groups go whose pods wait for nodes: as more of them come, and while any waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from numakin.process.threads import IDLE, IDLE_S, Threads

SHARE = 0.1
"""The share of its time that the thread may spend on planning: requests of kube-scheduler come first."""

AGAIN_S = 1.0
"""Between two plans while pods wait and none comes: nodes change, and room is given back."""


class GroupReservations:
    """reserve: plans, and returns whether any pod waits."""

    def __init__(self, reserve: Callable[[], bool], *, threads: Threads) -> None:
        self._reserve, self._wait_s = reserve, IDLE_S
        self._changed = threading.Event()
        self._thread = threads.thread("group reservations", self._round)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._thread.stop()
        self._changed.set()
        self._thread.stop(timeout_s)

    def changed(self) -> None:
        """Pods have come or gone. Never waits."""
        self._changed.set()

    def _round(self) -> object:
        waited = self._changed.wait(self._wait_s)
        if self._thread.stopping.is_set() or (not waited and self._wait_s == IDLE_S):
            return IDLE
        self._changed.clear()
        began = time.monotonic()
        self._wait_s = AGAIN_S if self._reserve() else IDLE_S
        self._thread.stopping.wait((time.monotonic() - began) * (1 / SHARE - 1))
        return None
