"""One loop: file descriptors to read and timers, in one thread. What can be read goes first."""

import heapq
import itertools
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

Callback: TypeAlias = Callable[[], None]

OVERDUE_S = 0.02
"""A timer waits no longer than this for a moment in which nothing can be read."""


@dataclass(slots=True, order=True)
class Timer:
    """A callback at a moment of the monotonic clock; cancel() makes it nothing."""

    moment: float
    order: int
    callback: Callback | None = field(compare=False)

    def cancel(self) -> None:
        self.callback = None


class Loop:
    """Calls back when a file descriptor can be read and when a timer is due.

    A peer may wait for what can be read, and none for a timer: so a due timer runs when nothing can be read, or
    when it is OVERDUE_S late, and one at a time, with a check of the descriptors after each.

    Callbacks must not block, and what they raise ends the loop: each owner handles its own errors.
    """

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._readers: dict[int, Callback] = {}
        self._timers: list[Timer] = []
        self._order = itertools.count()
        self._running = False

    def register(self, fd: int, callback: Callback) -> None:
        """Calls back whenever `fd` can be read, or has ended, until `unregister(fd)`."""
        self._poll.register(fd, select.EPOLLIN)
        self._readers[fd] = callback

    def unregister(self, fd: int) -> None:
        """Must come before the descriptor is closed."""
        self._poll.unregister(fd)
        del self._readers[fd]

    def call_later(self, delay_s: float, callback: Callback) -> Timer:
        """Calls back once, `delay_s` seconds from now."""
        timer = Timer(time.monotonic() + delay_s, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    def run(self) -> None:
        """Until stop()."""
        self._running = True
        while self._running:
            self.run_once()

    def run_once(self, timeout_s: float | None = None) -> None:
        """One round: waits at most `timeout_s` (None: for ever) for something to do, and does it."""
        events = self._poll.poll(self._wait(timeout_s))
        readers = [(fd, self._readers.get(fd)) for fd, _ in events]
        for fd, callback in readers:
            # An earlier callback of this round may have unregistered this one, or put another in its place.
            if callback is not None and self._readers.get(fd) is callback:
                callback()
        self._run_timer(OVERDUE_S if events else 0.0)

    def stop(self) -> None:
        """Makes run() return after the current round."""
        self._running = False

    def close(self) -> None:
        self._poll.close()

    def _wait(self, timeout_s: float | None) -> float | None:
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return timeout_s
        until_timer = max(0.0, self._timers[0].moment - time.monotonic())
        return until_timer if timeout_s is None else min(timeout_s, until_timer)

    def _run_timer(self, overdue_s: float) -> None:
        """The first one that is due for this long."""
        if self._timers and self._timers[0].moment + overdue_s <= time.monotonic():
            callback = heapq.heappop(self._timers).callback
            if callback is not None:
                callback()


class Burst:
    """Calls back once no event has come for `quiet_s`, and at the latest `within_s` after the first; in seconds."""

    def __init__(self, loop: Loop, callback: Callback, *, quiet_s: float = 0.02, within_s: float = 0.1) -> None:
        self._loop, self._callback, self._quiet_s, self._within_s = loop, callback, quiet_s, within_s
        self._timer: Timer | None = None
        self._latest = 0.0

    def event(self) -> None:
        now = time.monotonic()
        if self._timer is None:
            self._latest = now + self._within_s
        else:
            self._timer.cancel()
        self._timer = self._loop.call_later(min(self._quiet_s, self._latest - now), self._over)

    def _over(self) -> None:
        self._timer = None
        self._callback()
