"""The base of what is made of several parts: all are up inside of its `with` block, or none is left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import Self


class AllOrNothing(ABC):
    """A context manager. When _start() fails, and at the end, the parts that are on `_stack` are ended, last first."""

    __slots__ = ("_stack",)
    _stack: ExitStack

    @abstractmethod
    def _start(self) -> None:
        """Starts the parts, and registers the end of each on `_stack`."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
