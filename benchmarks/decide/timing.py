"""Times of one call, and how they grow."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Microseconds."""

    median: float
    p99: float


def timed(call: Callable[[], object], repeats: int) -> Times:
    """Of one call among many; the first ones, which fill caches, are not counted."""
    for _ in range(max(1, repeats // 20)):
        call()
    spans = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        call()
        spans.append(time.perf_counter_ns() - start)
    return of(spans)


def of(spans_ns: Sequence[int]) -> Times:
    spans = sorted(spans_ns)
    return Times(spans[len(spans) // 2] / 1000, spans[min(len(spans) - 1, len(spans) * 99 // 100)] / 1000)


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of log time over log size, by least squares: 1 is linear growth, 2 quadratic."""
    xs, ys = [math.log(size) for size in sizes], [math.log(seconds) for seconds in times]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return over / sum((x - mean_x) ** 2 for x in xs)
