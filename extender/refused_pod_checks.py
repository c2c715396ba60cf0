"""The thread that checks whether nodes that have changed would take pods that every node was refused to.

It is not the report stream's loop: a check takes up to 0.1 s, and every enforcer waits for that loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable

from extender.scoring.refused_pods import Welcome
from extender.state.pods import PodRow
from numakin.process.threads import IDLE, IDLE_S, Threads

SHARE = 0.25
"""The share of its time that the thread may spend on checks: requests of kube-scheduler come first."""


class RefusedPodChecks:
    """check: these nodes. wake: the pods that one of them would take."""

    def __init__(
        self,
        check: Callable[[Collection[str]], Welcome],
        wake: Callable[[Iterable[PodRow]], None],
        *,
        threads: Threads,
    ) -> None:
        self._check, self._wake = check, wake
        self._lock = threading.Lock()
        self._nodes: set[str] = set()
        self._pending = threading.Event()
        self._thread = threads.thread("refused pods", self._round)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._thread.stop()
        self._pending.set()
        self._thread.stop(timeout_s)

    def changed(self, node: str) -> None:
        """The node's placements have changed. Never waits; there are never more waiting than there are nodes."""
        with self._lock:
            self._nodes.add(node)
        self._pending.set()

    def _round(self) -> object:
        if not self._pending.wait(IDLE_S) or self._thread.stopping.is_set():
            return IDLE
        self._pending.clear()
        with self._lock:
            nodes, self._nodes = self._nodes, set()
        began = time.monotonic()
        welcome = self._check(nodes)
        self._wake(welcome.pods)
        if not welcome.complete:
            with self._lock:
                self._nodes |= nodes
            self._pending.set()
        self._thread.stopping.wait((time.monotonic() - began) * (1 / SHARE - 1))
        return None
