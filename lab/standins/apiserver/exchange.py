"""What the HTTP side and the tests share: requests received and carried out, ordered faults, open watches."""

from __future__ import annotations

import threading
from typing import Literal

from lab.standins.apiserver.answers import Answers
from lab.standins.apiserver.behind import Behind
from lab.standins.apiserver.faults import Orders
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects.store import Store
from lab.standins.apiserver.watching import Watch
from lab.standins.patience import PATIENCE_S

Counted = Literal["asked", "done", "watches"]
"""Requests that came, those that were carried out, and watches that are open now."""


class Exchange:
    """asked: every request so far. behind: services and pods that requests are passed on to."""

    def __init__(self) -> None:
        self.store = Store()
        self.faults = Orders()
        self.answers = Answers(self.store)
        self.behind = Behind()
        self.asked: list[Request] = []
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
        watch = Watch(self.store, request)
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

    def wait_for(self, counted: Counted, number: int, *, verb: str = "", resource: str = "") -> None:
        """Waits until so many requests (or more) were counted, or exactly so many watches are open. TimeoutError.

        Only what the server counts itself: nothing else wakes this up. For what a client does with the answer, `until`.
        """
        with self._happened:
            if not self._happened.wait_for(lambda: self._reached(counted, number, verb, resource), PATIENCE_S):
                what = f"{number} of {' '.join(word for word in (counted, verb, resource) if word)}"
                raise TimeoutError(
                    f"not within {PATIENCE_S:g} s: {what}; {self._number(counted, verb, resource)} so far"
                )

    def _reached(self, counted: Counted, number: int, verb: str, resource: str) -> bool:
        reached = self._number(counted, verb, resource)
        return reached == number if counted == "watches" else reached >= number

    def _number(self, counted: Counted, verb: str, resource: str) -> int:
        if counted == "watches":
            return self.watches(resource)
        return _number_of({"asked": self.asked, "done": self._done}[counted], verb, resource)

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
    return sum(verb in ("", request.verb) and resource in ("", request.kind.plural) for request in list(requests))
