"""What a program has begun in the cluster is undone at its end, however it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end it, once all is undone; SIGHUP not where it is ignored (nohup)."""


@contextmanager
def interrupted() -> Iterator[None]:
    """Whatever of `STOPPING` comes is a KeyboardInterrupt, as ^C is."""
    before = {number: signal.signal(number, _interrupt) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Calls `undo` at the end, whatever happens; a second ^C does not stop that."""
    heeded = _heeded()
    with interrupted():
        try:
            try:
                yield
            finally:
                for number in heeded:
                    signal.signal(number, signal.SIG_IGN)
        finally:
            undo()


def _heeded() -> list[signal.Signals]:
    return [each for each in STOPPING if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
