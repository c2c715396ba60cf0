"""What the HTTP side and the tests share: requests received and carried out, ordered faults, open watches."""

from __future__ import annotations

import threading
from collections.abc import Callable

from standins.apiserver.answers import Answers
from standins.apiserver.behind import Behind
from standins.apiserver.faults import Orders
from standins.apiserver.model.requests import Request
from standins.apiserver.objects.store import Store
from standins.apiserver.watching import Watch
from standins.patience import PATIENCE_S


class Exchange:
    """asked: every request so far. warned: what clients were warned of, fields of theirs that were dropped. behind:
    services and pods that requests are passed on to.
    """

    def __init__(self, bookmark_every_s: float) -> None:
        self.store = Store()
        self.faults = Orders()
        self.answers = Answers(self.store)
        self.behind = Behind()
        self.asked: list[Request] = []
        self.warned: list[str] = []
        self.bookmark_every_s = bookmark_every_s
        self.closing = threading.Event()
        self._done: list[Request] = []
        self._watches: set[Watch] = set()
        self._happened = threading.Condition()

    def received(self, request: Request) -> None:
        """Keeps it in `asked`."""
        with self._happened:
            self.asked.append(request)
            self._happened.notify_all()

    def carried_out(self, request: Request) -> None:
        with self._happened:
            self._done.append(request)
            self._happened.notify_all()

    def watch(self, request: Request) -> Watch:
        watch = Watch(self.store, request, self.bookmark_every_s)
        with self._happened:
            self._watches.add(watch)
            self._happened.notify_all()
        return watch

    def watch_over(self, watch: Watch) -> None:
        with self._happened:
            self._watches.discard(watch)
            self._happened.notify_all()

    def stalled(self) -> None:
        """Holds a stalled connection until the server closes."""
        self.closing.wait()

    def wait_for(self, holds: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
        """Waits until the predicate over `asked`, `done` or `watches` holds."""
        with self._happened:
            return self._happened.wait_for(holds, timeout_s)

    def open_watches(self, resource: str = "") -> list[Watch]:
        return [watch for watch in list(self._watches) if resource in ("", watch.request.kind.plural)]

    def watches(self, resource: str = "") -> int:
        """How many watches are open."""
        return len(self.open_watches(resource))

    def count(self, verb: str, resource: str = "") -> int:
        """How many such requests have come; what they change may not be there yet."""
        return _number_of(self.asked, verb, resource)

    def done(self, verb: str, resource: str = "") -> int:
        """How many such requests were carried out: what they change is there, and refused ones do not count."""
        return _number_of(self._done, verb, resource)


def _number_of(requests: list[Request], verb: str, resource: str) -> int:
    return sum(request.verb == verb and resource in ("", request.kind.plural) for request in list(requests))
