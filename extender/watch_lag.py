"""A short wait for pods that kube-scheduler asks about before the watch has shown them here.

kube-scheduler has a watch of its own, which may be ahead of ours. No room is held for a pod that the API server has not
sent (anybody could invent one), and without that the next member of its group may be led to another node.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock

LAG_S = 0.25
"""Ten times what a watch lags behind another one's on a node that is not overloaded (1 to 30 ms)."""


class WatchLag:
    """One caller waits at a time, as kube-scheduler asks for one pod at a time: so invented pods keep one thread at
    most. After a wait in vain nobody waits until the watch has shown something again.
    """

    def __init__(self) -> None:
        self._changed, self._turn = Condition(), Lock()
        self._in_vain = False

    def wait(self, known: Callable[[], bool]) -> None:
        """Until the pod is known, LAG_S at most."""
        if known() or self._in_vain or not self._turn.acquire(blocking=False):
            return
        try:
            with self._changed:
                self._in_vain = not self._changed.wait_for(known, LAG_S)
        finally:
            self._turn.release()

    def shown(self) -> None:
        """The watch has shown pods."""
        with self._changed:
            self._in_vain = False
            self._changed.notify_all()
