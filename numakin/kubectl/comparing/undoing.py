"""What a comparison has made is undone at its end, however it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a comparison, once all is undone; SIGHUP not where it is ignored (nohup)."""


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Calls `undo` at the end, whatever happens; a second ^C does not stop that."""
    heeded = [each for each in STOPPING if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heeded}
    try:
        try:
            yield
        finally:
            _ignore(heeded)
    finally:
        try:
            undo()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _ignore(numbers: list[signal.Signals]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
