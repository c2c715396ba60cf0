"""Durations counted by size, for a histogram. Standard library only."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
"""Upper bounds in seconds, inclusive. A container runtime waits two seconds for an answer unless it is configured."""


class Durations:
    """counts: by the bounds, one more for what is over the last. seconds: all together. Not for several threads."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds
