"""How much of each group's traffic stayed local, over time: a bounded series for each group.

A series that is full gives up every second point and takes only every second sample from then on, so that it always
reaches back to its beginning, the coarser the longer that is ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

MOST_POINTS = 480
"""Of one series: at one sample in ten seconds 80 minutes at full resolution, then 160 at half of it."""

MOST_GROUPS = 1_000
"""Series; of more groups the largest are sampled."""

Point = tuple[float, float]
"""When, in seconds since 1970, and the share, 0 to 1."""


@dataclass(slots=True)
class _Series:
    points: list[Point] = field(default_factory=list)
    stride: int = 1
    skipped: int = 0

    def add(self, point: Point) -> None:
        """What is not before it was sampled by a clock that has been set back since, and goes: times ascend."""
        while self.points and self.points[-1][0] >= point[0]:
            self.points.pop()
        self.skipped += 1
        if self.skipped < self.stride:
            return
        self.skipped = 0
        self.points.append(point)
        if len(self.points) >= MOST_POINTS:
            self.points = self.points[::2]
            self.stride *= 2


class LocalityHistory:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._series: dict[str, _Series] = {}

    def sample(self, at: float, shares: Mapping[str, float]) -> None:
        """The share of each group that there is now, the largest group first; the series of all others end."""
        kept = list(shares)[:MOST_GROUPS]
        with self._lock:
            self._series = {group: self._series.get(group) or _Series() for group in kept}
            for group in kept:
                self._series[group].add((at, shares[group]))

    def of(self, group: str) -> list[Point]:
        with self._lock:
            series = self._series.get(group)
            return list(series.points) if series else []
