"""A watch of pods, and what its consumer knows by it."""

import threading
from collections.abc import Callable

from extender.kube.watch import Pace
from extender.state.pods import Changes, PodRow
from lab.standins.apiserver import ApiServer
from lab.standins.patience import PATIENCE_S
from numakin.process.threads import Backoff

QUICK = Pace(Backoff(first_s=0.01, longest_s=0.05))


class View:
    """What a consumer of the changes knows; waits for it to become true."""

    def __init__(self) -> None:
        self.rows: dict[str, PodRow] = {}
        self.wholes = 0
        self._changed = threading.Condition()

    def take(self, changes: Changes[PodRow]) -> None:
        with self._changed:
            if changes.whole:
                self.rows.clear()
                self.wholes += 1
            self.rows.update({row.name: row for row in changes.rows})
            for uid in changes.gone:
                self.rows = {name: row for name, row in self.rows.items() if row.uid != uid}
            self._changed.notify_all()

    def wait(self, holds: Callable[["View"], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self), PATIENCE_S), self.rows

    def shows(self, *names: str) -> None:
        self.wait(lambda view: sorted(view.rows) == sorted(names))

    def bound(self, name: str, node: str) -> None:
        self.wait(lambda view: name in view.rows and view.rows[name].node == node)


def watching(server: ApiServer, times: int = 1) -> None:
    server.wait_for("asked", times, verb="watch", resource="pods")
    server.wait_for("watches", 1, resource="pods")
