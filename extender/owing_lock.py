"""A lock under which something may be owed: whoever takes it next does that first, so that nobody finds it undone."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import TracebackType

import structlog

_log = structlog.get_logger("cluster")


class OwingLock:
    """A context manager, as `threading.Lock`; not for a thread that has it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owed: Callable[[], None] | None = None

    def owe(self, work: Callable[[], None]) -> None:
        """To be done by whoever takes the lock next."""
        with self:
            self._owed = work

    def settle(self) -> None:
        """Does what is owed."""
        with self:
            pass

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._owed is None:
            return
        work, self._owed = self._owed, None
        try:
            work()
        except Exception:  # noqa: BLE001 - it is not the fault of whoever takes the lock
            _log.exception("what was owed could not be done")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
