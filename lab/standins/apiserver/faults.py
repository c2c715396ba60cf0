"""What can go wrong on the way to an API server, to order."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.standins.apiserver.model.requests import Request


@dataclass(frozen=True)
class Answer:
    """The request is answered so, in place of its true answer."""

    code: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


THROTTLED = Answer(
    429,
    b"Too many requests, please try again later.\n",
    {"Content-Type": "text/plain; charset=utf-8", "Retry-After": "1"},
)
"""What API priority and fairness answers: plain text, not a Status."""


@dataclass(frozen=True)
class Cut:
    """The connection is closed in the middle: by FIN without the last chunk, or by RST."""

    reset: bool = False


@dataclass(frozen=True)
class Stall:
    """Nothing more is sent, and the connection stays open."""


@dataclass(frozen=True)
class Send:
    """These bytes are sent as one chunk of the watch, which then ends as it should."""

    frame: bytes


Fault = Answer | Cut | Stall | Send


@dataclass(frozen=True)
class Order:
    """The fault for the next `times` requests with this verb and resource (empty: any); for a watch, after so many of
    its frames.
    """

    fault: Fault
    verb: str = ""
    resource: str = ""
    times: int = 1
    after: int = 0

    def meets(self, request: Request) -> bool:
        resource = request.kind.plural + (f"/{request.subresource}" if request.subresource else "")
        return self.verb in ("", request.verb) and self.resource in ("", resource)


class Orders:
    """The faults ordered and not yet used up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: list[tuple[Order, int]] = []

    def add(self, order: Order) -> None:
        with self._lock:
            self._orders.append((order, order.times))

    def clear(self) -> None:
        with self._lock:
            self._orders.clear()

    def take(self, request: Request) -> Order | None:
        with self._lock:
            for at, (order, left) in enumerate(self._orders):
                if order.meets(request):
                    self._orders[at : at + 1] = [(order, left - 1)] if left > 1 else []
                    return order
        return None
