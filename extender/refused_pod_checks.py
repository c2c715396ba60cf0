"""The thread that checks whether nodes that have changed would take pods that every node was refused to.

It is not the report stream's loop: a check takes up to 0.1 s, and every enforcer waits for that loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable

from extender.scoring.refused_pods import Welcome
from extender.state.pods import PodRow
from numakin.process.threads import Threads
from numakin.process.woken import WokenThread

SHARE = 0.25
"""The share of its time that the thread may spend on checks: requests of kube-scheduler come first."""


class RefusedPodChecks(WokenThread):
    """check: these nodes. wake: the pods that one of them would take."""

    def __init__(
        self,
        check: Callable[[Collection[str]], Welcome],
        wake: Callable[[Iterable[PodRow]], None],
        *,
        threads: Threads,
    ) -> None:
        super().__init__("refused pods", self._look, share=SHARE, threads=threads)
        self._check, self._wake_pods = check, wake
        self._lock = threading.Lock()
        self._nodes: set[str] = set()

    def changed(self, node: str) -> None:
        """The node's placements have changed. Never waits; there are never more waiting than there are nodes."""
        with self._lock:
            self._nodes.add(node)
        self.wake()

    def _look(self) -> float | None:
        with self._lock:
            nodes, self._nodes = self._nodes, set()
        complete = False
        try:
            welcome = self._check(nodes)
            self._wake_pods(welcome.pods)
            complete = welcome.complete
        finally:
            if not complete:
                with self._lock:
                    self._nodes |= nodes
        return None if complete else 0.0
