"""Members that were placed since the observer last looked, by the kin that they were placed with."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from numakin.placement.decide.request import Kin, Request

MOST_NEWCOMERS = 512
"""Newcomers that are remembered until the observer has seen them; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """generation: of the occupancy in which it was placed."""

    generation: int
    request: Request
    kin: Kin

    def is_kin_of(self, request: Request) -> bool:
        """By the kin that it was placed with, else by its group."""
        if self.kin.weights:
            return self.kin.weights.get(request.pod, 0.0) > 0
        return bool(request.opt_in.group) and request.opt_in.group == self.request.opt_in.group


class Newcomers:
    """A bounded queue, in the order of generations."""

    def __init__(self) -> None:
        self._queue: deque[Newcomer] = deque(maxlen=MOST_NEWCOMERS)

    def add(self, generation: int, request: Request, kin: Kin) -> None:
        self._queue.append(Newcomer(generation, request, kin))

    def since(self, generation: int) -> Iterator[Newcomer]:
        """Those that were placed after this generation; the others are forgotten."""
        while self._queue and self._queue[0].generation <= generation:
            self._queue.popleft()
        return iter(self._queue)
