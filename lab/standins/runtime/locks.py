"""The two locks of a runtime: its own, which a CRI call holds, and NRI's, which is held while plugins are asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lab.standins.runtime.connection import StatusError

DEADLINE_EXCEEDED = 4


class Locks:
    """`runtime` is taken by every CRI call, then NRI's for each event of it. An UpdateContainers takes both the other
    way round before NRI 0.12.1, and NRI's not at all since: where one meets an event, the older runtime hangs for good
    (measured: containerd 1.7.24 to 2.3.4, CRI-O 1.37).

    lets_go: whether NRI's is not held while an update is carried out. deadline_s: of a CRI call; once it has passed,
    `hung` is set, and every later event fails at once. `updates` counts those that have begun.
    """

    def __init__(self, *, lets_go: bool, deadline_s: float) -> None:
        self.runtime = threading.RLock()
        self.hung = False
        self.updates = 0
        self._nri = threading.RLock()
        self._lets_go, self._deadline_s = lets_go, deadline_s

    @contextmanager
    def event(self) -> Iterator[None]:
        """Within a CRI call. Raises StatusError where the runtime hangs."""
        if self.hung or not self._nri.acquire(timeout=self._deadline_s):
            self.hung = True
            raise StatusError(DEADLINE_EXCEEDED, "context deadline exceeded: the runtime hangs")
        try:
            yield
        finally:
            self._nri.release()

    @contextmanager
    def update(self) -> Iterator[None]:
        """An UpdateContainers; never answered by a runtime that hangs."""
        if self._lets_go:
            self.updates += 1
            with self.runtime:
                yield
            return
        with self._nri:
            self.updates += 1
            with self.runtime:
                if not self.hung:
                    yield
                    return
            threading.Event().wait()
