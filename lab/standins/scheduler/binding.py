"""Bindings on their way to the API server: kube-scheduler posts each on a goroutine of its own, and does not wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from typing import Self, TypeVar

T = TypeVar("T")

DELAY_S = (0.001, 0.03)
"""From the choice until others see it; measured on kube-scheduler 1.34 with its API server on one machine."""

AT_ONCE = 32
"""Bindings under way; the real one has no bound."""


class Binder:
    """A context manager; leaving it waits for what is under way. delay_s: the least and the most."""

    def __init__(self, random: Random, delay_s: tuple[float, float] = DELAY_S) -> None:
        self._random, self._delay_s = random, delay_s
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="binding")

    def bind(self, post: Callable[[], T]) -> Future[T]:
        """post: creates the Binding; called on another thread, and perhaps after that of a later pod."""
        return self._threads.submit(_late, self._random.uniform(*self._delay_s), post)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()


def _late(delay_s: float, post: Callable[[], T]) -> T:
    time.sleep(delay_s)
    return post()
