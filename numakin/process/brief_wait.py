"""A short wait of one caller at a time for what another thread is about to make known."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock


class BriefWait:
    """What is asked for in vain keeps one thread at most; after a wait in vain no thread waits until there is news."""

    def __init__(self) -> None:
        self._changed, self._turn = Condition(), Lock()
        self._in_vain = False

    def until(self, known: Callable[[], bool], longest_s: float) -> None:
        """Returns once `known()`, or without that where it is another caller's turn or takes longer; with no time
        left, no wait was in vain.
        """
        if known() or longest_s <= 0 or self._in_vain or not self._turn.acquire(blocking=False):
            return
        try:
            with self._changed:
                self._in_vain = not self._changed.wait_for(known, longest_s)
        finally:
            self._turn.release()

    def news(self) -> None:
        """What is waited for may be known now."""
        with self._changed:
            self._in_vain = False
            self._changed.notify_all()
