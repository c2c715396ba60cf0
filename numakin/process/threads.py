"""Supervised threads: none ends on an exception, and one that gets nowhere is named.

A thread's work is a function that is called again and again: one round. A round waits for its work (some seconds at
most, or it calls `progress` meanwhile), does it and returns; IDLE where there was nothing to do. One that raises is
logged and counted, and the next comes after a wait, longer each time. A thread without a good round for longer than it
may be is stale: it fails each time, or it hangs. An idle round is a good one, but does not make up for a failed one.

    threads = Threads(failed=lambda failure: log.exception("a thread failed", thread=failure.thread))
    thread = threads.thread("lease", self._round, stale_after_s=60)
    thread.start()
    ...
    thread.stop(timeout_s=2)
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

STALE_AFTER_S = 60.0

IDLE_S = 5.0
"""A good time for a round to wait for work before it returns IDLE."""

IDLE = object()
"""What a round returns that had nothing to do."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits after failed rounds, in seconds: doubled after each in a row, up to the longest."""

    first_s: float = 0.5
    longest_s: float = 30.0

    def wait_s(self, failures: int) -> float:
        """failures: in a row, at least 1."""
        return min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 32))


@dataclass(frozen=True, slots=True)
class Failure:
    """A round that raised. wait_s: before the next."""

    thread: str
    error: BaseException
    wait_s: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How a thread stands. since_success_s: since its last good round, or its start. essential: whether the process is
    of no use without it. failures: rounds that raised so far. error: of the latest round that was not idle; empty when
    that was good.
    """

    thread: str
    since_success_s: float
    stale: bool
    essential: bool
    failures: int
    error: str

    def __str__(self) -> str:
        why = f": {self.error}" if self.error else ""
        return f"thread {self.thread!r} has had no good round for {self.since_success_s:.0f} s{why}"


class Thread:
    """Made by `Threads`. stopping: set once it is asked to end; a round may wait for it."""

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        terms: _Terms,
        owner: Threads,
        *,
        wake: Callable[[], object],
        last: Callable[[], object],
    ) -> None:
        self.stopping = threading.Event()
        self._name, self._work, self._wake, self._last, self._terms, self._owner = name, work, wake, last, terms, owner
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._succeeded = 0.0
        self._failures = self._in_a_row = 0
        self._error = ""

    def start(self) -> None:
        self._succeeded = self._owner.clock()
        self._owner.started(self)
        try:
            self._thread.start()
        except RuntimeError:  # no memory for it, or too many
            self._owner.ended(self)
            raise

    def stop(self, timeout_s: float = 0.0) -> None:
        """Ends it after the present round, which is woken if it waits, and waits so long for that."""
        self.stopping.set()
        self._wake()
        if timeout_s and self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def progress(self) -> None:
        """For a round that takes long: it works."""
        self._succeeded = self._owner.clock()
        self._in_a_row = 0

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def standing(self) -> Standing:
        since = max(0.0, self._owner.clock() - self._succeeded)
        stale = since > self._terms.stale_after_s
        return Standing(self._name, since, stale, self._terms.essential, self._failures, self._error)

    def _run(self) -> None:
        try:
            while not self.stopping.is_set():
                if not self._good(self._work):
                    self.stopping.wait(self._terms.backoff.wait_s(self._in_a_row))
            self._good(self._last)
        finally:
            self._owner.ended(self)

    def _good(self, work: Callable[[], object]) -> bool:
        try:
            idle = work() is IDLE
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the thread goes on
            self._failures += 1
            self._in_a_row += 1
            self._error = f"{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):
                self._owner.failed(Failure(self._name, error, self._terms.backoff.wait_s(self._in_a_row)))
            return False
        if not (idle and self._error):
            self._error = ""
            self.progress()
        return True


class Threaded:
    """What has a thread of its own, `_thread`, for its rounds."""

    _thread: Thread

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 0.0) -> None:
        """As `Thread.stop`."""
        self._thread.stop(timeout_s)

    @property
    def alive(self) -> bool:
        return self._thread.alive


S = TypeVar("S", bound=Thread | Threaded)


def running(part: S) -> S:
    """The part, once it runs. One whose threads can't be started is stopped, so that another can be tried later."""
    try:
        part.start()
    except BaseException:
        part.stop()
        raise
    return part


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is asked of a thread."""

    stale_after_s: float
    essential: bool
    backoff: Backoff


class Threads:
    """All supervised threads of one process; its methods may be called from any thread.

    failed: called on the failing thread, as the exception is handled. clock: seconds, monotonic.
    """

    def __init__(self, failed: Callable[[Failure], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.failed, self.clock = failed, clock
        self._lock = threading.Lock()
        self._running: tuple[Thread, ...] = ()

    def thread(
        self,
        name: str,
        work: Callable[[], object],
        *,
        wake: Callable[[], object] = lambda: None,
        last: Callable[[], object] = lambda: None,
        stale_after_s: float = STALE_AFTER_S,
        essential: bool = False,
        backoff: Backoff = Backoff(),
    ) -> Thread:
        """Not started yet. wake: called as it is asked to end, for a round that waits for anything but `stopping`.
        last: called once then, after its last round.
        """
        return Thread(name, work, _Terms(stale_after_s, essential, backoff), self, wake=wake, last=last)

    def once(self, name: str, work: Callable[[], object]) -> None:
        """Starts a thread that does this once, such as what one connection needs; what it raises is told, and ends that
        thread alone. RuntimeError: there is no memory for it, or there are too many.
        """
        threading.Thread(target=self._once, args=(name, work), name=name, daemon=True).start()

    def _once(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, it was told
            self.failed(Failure(name, error, 0.0))

    def started(self, thread: Thread) -> None:
        with self._lock:
            self._running += (thread,)

    def ended(self, thread: Thread) -> None:
        with self._lock:
            self._running = tuple(other for other in self._running if other is not thread)

    def standings(self) -> tuple[Standing, ...]:
        """Of those that were started and have not ended."""
        return tuple(thread.standing() for thread in self._running)

    def stale(self) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.standings() if standing.stale)


def rows(standings: Iterable[Standing]) -> tuple[tuple[str, str, dict[str, float]], ...]:
    """For Prometheus: the end of each metric's name, what it means, and its value by thread."""
    standings = tuple(standings)
    return (
        (
            "thread_seconds_since_success",
            "Seconds since the thread's last good round.",
            {standing.thread: standing.since_success_s for standing in standings},
        ),
        (
            "thread_stale",
            "1 for a thread without a good round for too long.",
            {standing.thread: float(standing.stale) for standing in standings},
        ),
        (
            "thread_failures_total",
            "Rounds of the thread that failed.",
            {standing.thread: float(standing.failures) for standing in standings},
        ),
    )


def worded(standings: Iterable[Standing]) -> str:
    """For people; empty when there are none."""
    return "; ".join(str(standing) for standing in standings)
