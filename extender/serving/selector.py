"""What the event loop looks at first: a thousand strangers' connections must not keep it from a known one."""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from select import EPOLLIN, EPOLLOUT, epoll
from typing import Any

TURN_S = 0.001
"""A TLS handshake takes most of it; epoll waits for whole milliseconds."""

REST = 3
"""How many times as long as their turn strangers rest: they have a quarter of the loop's time."""

MOST_REST_S = 0.05
"""However long a stranger's round took, as where the process was stopped in it."""

_MASKS = {selectors.EVENT_READ: EPOLLIN, selectors.EVENT_WRITE: EPOLLOUT}

Ready = list[tuple[selectors.SelectorKey, int]]


@dataclass(frozen=True, slots=True)
class _Callers:
    """The strangers of one client address that are registered, by descriptor."""

    name: str
    ready: epoll = field(default_factory=epoll)
    descriptors: set[int] = field(default_factory=set)


class FairSelector(selectors.BaseSelector):
    """In each round all known sockets that are ready, and one stranger's: client addresses take turns, and so do the
    connections of each. After TURN_S of such rounds strangers rest: a crowd has a quarter of the loop's time, and a
    newcomer waits for one connection of each other address.

    Keys are descriptors, as asyncio's. Each is known unless `distrust` was told of it. What is ready in an epoll comes
    in turn (epoll(7)), and so do epolls in an epoll: `_all` watches `_known` and `_crowd`, and `_crowd` has one of each
    address.
    """

    def __init__(self) -> None:
        self._all, self._known, self._crowd = epoll(), epoll(), epoll()
        for each in (self._known, self._crowd):
            self._all.register(each.fileno(), EPOLLIN)
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._strangers: dict[int, str] = {}
        self._addresses: dict[str, _Callers] = {}
        self._of_epoll: dict[int, _Callers] = {}
        self._of_stranger: dict[int, _Callers] = {}
        self._looked = self._spent = self._rested = 0.0

    def distrust(self, descriptor: int, address: str) -> None:
        """From its next registration on this is a stranger's, of that client address, until `trust` is told of it."""
        self._strangers[descriptor] = address

    def trust(self, descriptor: int) -> None:
        """From now on this is a known one's."""
        key = self._keys.get(descriptor)
        if key is not None:
            self.unregister(descriptor)
        self._strangers.pop(descriptor, None)
        if key is not None:
            self.register(descriptor, key.events, key.data)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if fileobj in self._keys:
            raise KeyError(f"{fileobj} is registered already")
        if fileobj in self._strangers:
            self._join(fileobj, self._strangers[fileobj])
        self._epoll(fileobj).register(fileobj, _mask(events))
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj]._replace(events=events, data=data)
        self._epoll(fileobj).modify(fileobj, _mask(events))
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(fileobj)
        with suppress(OSError):  # closed since, as in `selectors`
            self._epoll(fileobj).unregister(fileobj)
        if fileobj in self._of_stranger:
            self._leave(fileobj)
        return key

    def select(self, timeout: float | None = None) -> Ready:
        rest_s = self._rest_s()
        if rest_s > 0:
            return self._ready(self._known.poll(rest_s if timeout is None else min(timeout, rest_s)))
        watched = {descriptor for descriptor, _ in self._all.poll(timeout)}
        ready = self._ready(self._known.poll(0)) if self._known.fileno() in watched else []
        return ready + self._next_stranger() if self._crowd.fileno() in watched else ready

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def close(self) -> None:
        for each in (*(address.ready for address in self._addresses.values()), self._all, self._known, self._crowd):
            each.close()
        self._keys.clear()

    def _epoll(self, descriptor: int) -> epoll:
        address = self._of_stranger.get(descriptor)
        return self._known if address is None else address.ready

    def _join(self, descriptor: int, name: str) -> None:
        if name not in self._addresses:
            made = self._addresses[name] = _Callers(name)
            self._of_epoll[made.ready.fileno()] = made
            self._crowd.register(made.ready.fileno(), EPOLLIN)
        address = self._of_stranger[descriptor] = self._addresses[name]
        address.descriptors.add(descriptor)

    def _leave(self, descriptor: int) -> None:
        address = self._of_stranger.pop(descriptor)
        address.descriptors.remove(descriptor)
        if not address.descriptors:
            del self._addresses[address.name], self._of_epoll[address.ready.fileno()]
            address.ready.close()

    def _rest_s(self) -> float:
        """How long strangers are not looked at yet. The round in which one was ends when this is asked next."""
        now = time.monotonic()
        if self._looked:
            self._spent += now - self._looked
            self._looked = 0.0
        if self._spent >= TURN_S:
            self._rested = now + min(REST * self._spent, MOST_REST_S)
            self._spent = 0.0
        return self._rested - now

    def _next_stranger(self) -> Ready:
        self._looked = time.monotonic()
        return [
            entry
            for address, _ in self._crowd.poll(0, 1)
            for entry in self._ready(self._of_epoll[address].ready.poll(0, 1))
        ]

    def _ready(self, polled: Iterable[tuple[int, int]]) -> Ready:
        return [(key := self._keys[descriptor], _events(mask) & key.events) for descriptor, mask in polled]


def _mask(events: int) -> int:
    return sum(mask for event, mask in _MASKS.items() if events & event)


def _events(mask: int) -> int:
    """A hang-up or an error is both, as in `selectors`: whoever reads or writes is told."""
    return (selectors.EVENT_WRITE if mask & ~EPOLLIN else 0) | (selectors.EVENT_READ if mask & ~EPOLLOUT else 0)
