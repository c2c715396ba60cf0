"""What is worked out of a question before it is asked.

Between filter and prioritize kube-scheduler has its own plugins weigh the nodes. So filter is answered first, and what
prioritize will ask is worked out once that answer is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Ahead(Generic[Result]):
    """Thread-safe. body: the question's, as it is expected. done: whether the result is there."""

    def __init__(self, body: bytes, work: Callable[[], Result]) -> None:
        self.body, self.done = body, False
        self._work, self._lock = work, Lock()
        self._results: list[Result] = []
        self._error: Exception | None = None

    def result(self) -> Result:
        """Worked out by whoever comes first; the others wait for it. Raises what that raised."""
        with self._lock:
            if not self.done:
                try:
                    self._results.append(self._work())
                except Exception as error:  # noqa: BLE001 - raised below, to each who asks
                    self._error = error
                self.done = True
        if self._error is not None:
            raise self._error
        return self._results[0]

    def work(self) -> None:
        """For nobody yet: who asks gets the result, or what was raised."""
        with suppress(Exception):
            self.result()
