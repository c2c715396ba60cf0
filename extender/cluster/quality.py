"""From decisions' scores, 0 to 1, to kube-scheduler's: integers from 0 to 10."""

from __future__ import annotations

from collections.abc import Sequence

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""

FRESH = 0.25
"""The share of the report timeout in which a report counts in full."""


def age_factor(age: float, timeout: float) -> float:
    """1 while fresh, then falling evenly to 0 at the timeout."""
    fresh = timeout * FRESH
    return min(1.0, max(0.0, (timeout - age) / (timeout - fresh)))


def integer_scores(scores: Sequence[float], factors: Sequence[float]) -> list[int]:
    return [round(BEST * score * factor) for score, factor in zip(scores, factors, strict=True)]
