"""What one thread is to do, in the order in which it came; not everything is worth waking it for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Event

QueuedStep = Callable[[], object]


class StepQueue:
    """put() may be called from any thread, the others from the one thread alone."""

    def __init__(self) -> None:
        self._steps: deque[QueuedStep] = deque()
        self._called = Event()

    def put(self, step: QueuedStep, *, soon: bool = True) -> None:
        """soon: the thread is woken for it; else it is done with the next that is, or when it looks by itself."""
        self._steps.append(step)
        if soon:
            self._called.set()

    def wait(self, longest_s: float) -> int:
        """How many are there, once one of them is to be done soon, or after that time."""
        self._called.wait(longest_s)
        return len(self._steps)

    def take(self) -> QueuedStep:
        """IndexError where there is none."""
        step = self._steps.popleft()
        if not self._steps:
            self._called.clear()
            if self._steps:  # put meanwhile, and its call cleared
                self._called.set()
        return step
