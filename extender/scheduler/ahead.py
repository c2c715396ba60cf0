"""What is worked out of a question before it is asked.

Between filter and prioritize kube-scheduler has its own plugins weigh the nodes. So filter is answered first, and what
prioritize will ask is worked out once that answer is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Ahead(Generic[Result]):
    """Thread-safe. body: the question's, as it is expected."""

    def __init__(self, body: bytes, work: Callable[[], Result]) -> None:
        self.body = body
        self._work, self._lock, self._done = work, Lock(), Event()
        self._results: list[Result] = []
        self._error: Exception | None = None

    def result(self) -> Result:
        """Worked out by whoever comes first; the others wait for it. Raises what that raised."""
        with self._lock:
            if not self._done.is_set():
                try:
                    self._results.append(self._work())
                except Exception as error:  # noqa: BLE001 - raised below, to each who asks
                    self._error = error
                self._done.set()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def done(self, within_s: float = 0.0) -> bool:
        """Whether the result is there, within that time."""
        return self._done.wait(within_s)

    def work(self) -> None:
        """For nobody yet: who asks gets the result, or what was raised."""
        with suppress(Exception):
            self.result()
