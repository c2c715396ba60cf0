"""Events on pods: what was decided for them, and which of their annotations is wrong; and on groups' objects.

An Event that was sent before is not sent anew but counted (`kubectl describe` shows "x12 over 3m"); and a pod that has
too many gets no more for a while, as client-go's recorder has it: 25 at once, then one in five minutes. Sending goes on
a thread of its own: no call waits for it, and where it can't keep up Events are dropped and counted. Nothing depends on
them.
"""

from __future__ import annotations

import queue
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from extender.kube.api import MERGE_PATCH, Api, ApiError, Unreachable
from numakin.process.log import Log
from numakin.process.threads import IDLE, IDLE_S, Threaded, Threads

COMPONENT = "numakin"
BURST = 25
REFILL_S = 300.0
REMEMBERED = 4096
"""client-go's EventSourceObjectSpamFilter and LRU cache."""
NODE_BURST = 1_000
NODE_REFILL_S = 1.0
"""Of what one node's enforcer says, about whichever pods, as it says of itself which it has: as many at once, and then
one a second. An enforcer that starts anew tells of all its containers.
"""
AGAIN_WITHIN_S = 600.0
"""Seconds after which an equal Event counts as a new one."""
WAITING = 1000
LOOK_S = 0.5
"""Between two looks which replica sends, while it is not this one."""
LONGEST = 1024
"""Characters of a message: what events.k8s.io allows for a note."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class About:
    """The object that an Event is about."""

    namespace: str
    name: str
    uid: str
    kind: str = "Pod"
    api_version: str = "v1"


@dataclass(frozen=True, slots=True)
class KubeEvent:
    """reason: one word in CamelCase, for machines. message: for people; equal ones are counted together. series: what
    makes Events one, where the messages' figures differ from time to time; the latest message stands. node: whose
    enforcer says it; empty: none does.
    """

    about: About
    reason: str
    message: str
    warning: bool = False
    series: str = ""
    node: str = ""

    @property
    def kind(self) -> tuple[About, str, bool, str]:
        """Equal for those that are counted together."""
        return self.about, self.reason, self.warning, self.series or self.message


@dataclass(frozen=True, slots=True)
class StandingEvent:
    """An Event as it stands at the API server. first, last: seconds since 1970."""

    name: str
    first: float
    last: float
    count: int = 1


class Book:
    """The Events sent so far: decides whether an Event is a new one, one more of a known one, or one too many."""

    def __init__(self) -> None:
        self._told: OrderedDict[Hashable, StandingEvent] = OrderedDict()
        self._pods, self._nodes = _Allowances(BURST, REFILL_S), _Allowances(NODE_BURST, NODE_REFILL_S)

    def enter(self, event: KubeEvent, now: float) -> StandingEvent | None:
        """How to report it: `count` 1 is a new Event. None: not at all. now: seconds since 1970."""
        if (event.node and not self._nodes.take(event.node, now)) or not self._pods.take(event.about.uid, now):
            return None
        known = self._told.pop(event.kind, None)
        if known is None or now - known.last > AGAIN_WITHIN_S:
            known = StandingEvent(_name(event.about, now), now, now)
        else:
            known = replace(known, last=now, count=known.count + 1)
        self._told[event.kind] = known
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return known

    def forget(self, event: KubeEvent) -> None:
        """The Event was not sent after all, or has expired."""
        self._told.pop(event.kind, None)


class _Allowances:
    """A token bucket for each name: so many at once, and then one in refill_s."""

    def __init__(self, burst: int, refill_s: float) -> None:
        self._burst, self._refill_s = float(burst), refill_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> bool:
        left, at = self._left.pop(name, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - at) / self._refill_s)
        allowed = left >= 1
        self._left[name] = (left - 1 if allowed else left, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return allowed


def rendered(event: KubeEvent, announced: StandingEvent, host: str) -> dict[str, Any]:
    """A new Event, as core v1."""
    about = event.about
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": announced.name, "namespace": about.namespace},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "reason": event.reason,
        "message": _message(event),
        "type": "Warning" if event.warning else "Normal",
        "source": {"component": COMPONENT, "host": host},
        "firstTimestamp": _time(announced.first),
        "lastTimestamp": _time(announced.last),
        "count": announced.count,
        "reportingComponent": COMPONENT,
        "reportingInstance": host,
    }


def counted(event: KubeEvent, announced: StandingEvent) -> Mapping[str, Any]:
    """The patch of an Event that happened again."""
    return {"count": announced.count, "lastTimestamp": _time(announced.last), "message": _message(event)}


class Events(Threaded):
    """Sends Events while `writes` says that this replica is the one to do so. While none is known to be, as when all
    begin, they are kept until one is. others: whether another replica is.
    """

    def __init__(
        self,
        api: Api,
        host: str,
        writes: Callable[[], bool] = lambda: True,
        others: Callable[[], bool] = lambda: False,
        *,
        threads: Threads,
    ) -> None:
        self.dropped = 0
        self._api = api
        self._host = host
        self._until = 0.0
        self._writes, self._others = writes, others
        self._book = Book()
        self._waiting: queue.Queue[KubeEvent | None] = queue.Queue(WAITING)
        self._thread = threads.thread("events", self._round, last=self._drain)

    def stop(self, timeout_s: float = 10.0) -> None:
        """Sends what is waiting, for so long."""
        self._until = time.monotonic() + timeout_s
        self._thread.stop()
        with suppress(queue.Full):  # then it does not wait
            self._waiting.put_nowait(None)
        self._thread.stop(timeout_s)

    def emit(self, event: KubeEvent) -> None:
        """Never waits, never raises."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def _round(self) -> object:
        if not self._writes():
            self._thread.stopping.wait(LOOK_S)
            while self._others() and not self._waiting.empty():
                self._waiting.get_nowait()
            return IDLE
        try:
            event = self._waiting.get(timeout=IDLE_S)
        except queue.Empty:
            return IDLE
        if event is not None:
            self._handle(event)
        return IDLE if event is None else None

    def _drain(self) -> None:
        with suppress(queue.Empty):
            while time.monotonic() < self._until and self._writes():
                event = self._waiting.get_nowait()
                if event is not None:
                    self._handle(event)

    def _handle(self, event: KubeEvent) -> None:
        announced = self._book.enter(event, time.time())
        if announced is None:
            self.dropped += 1
            return
        try:
            self._send(event, announced)
        except (ApiError, Unreachable) as bad:
            self.dropped += 1
            self._book.forget(event)
            # Mostly a pod or namespace that is going: not worth more than this.
            _log.debug("event not sent", reason=event.reason, about=event.about.name, error=str(bad))

    def _send(self, event: KubeEvent, announced: StandingEvent) -> None:
        path = f"/api/v1/namespaces/{event.about.namespace}/events"
        if announced.count > 1:
            try:
                self._api.request(
                    "PATCH", f"{path}/{announced.name}", body=counted(event, announced), content_type=MERGE_PATCH
                )
            except ApiError as refused:
                if refused.code != 404:
                    raise
            else:
                return
            # Events live for an hour unless sent again: this one has ended meanwhile.
        self._api.request("POST", path, body=rendered(event, announced, self._host))


def _message(event: KubeEvent) -> str:
    return event.message if len(event.message) <= LONGEST else event.message[: LONGEST - 3] + "..."


def _name(about: About, now: float) -> str:
    """As client-go names them; a name has at most 253 characters."""
    return f"{about.name[:230]}.{int(now * 1e6):x}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
