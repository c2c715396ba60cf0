"""From decisions' scores, 0 to 1, to kube-scheduler's integers from 0 to 10.

A group spread over three nodes gives none of them a kin share over a half, and a first member has no kin at all:
written out as they are, such scores would leave the upper end unused, and the in-tree plugins would outvote them. So
the kin's part is taken relative to the best of the offered nodes, and where none has kin, the rest has the whole range.
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.cluster.scoring import Weighed
from placement.scoring import EMPTY_SHARE, KIN_SHARE, ROOM_SHARE

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""

FRESH = 0.25
"""The share of the report timeout in which a report counts in full."""


def age_factor(age: float, timeout: float) -> float:
    """1 while fresh, then falling evenly to 0 at the timeout."""
    fresh = timeout * FRESH
    return min(1.0, max(0.0, (timeout - age) / (timeout - fresh)))


def integer_scores(weighed: Sequence[Weighed], factors: Sequence[float]) -> list[int]:
    """In their order; factors: by age. Whoever is behind the best node in kin is behind it in points too."""
    most = max((one.kin for one in weighed), default=0.0)
    exact = [_stretched(one, most) * factor for one, factor in zip(weighed, factors, strict=True)]
    points = [round(BEST * min(1.0, one)) for one in exact]
    if not most:
        return points
    best = max(range(len(exact)), key=exact.__getitem__)
    points[best] = max(points[best], 1)
    behind = weighed[best].kin - 1e-9
    return [
        min(mine, points[best] - 1) if one.kin < behind else mine for mine, one in zip(points, weighed, strict=True)
    ]


def _stretched(one: Weighed, most: float) -> float:
    if not most:
        return one.score / (ROOM_SHARE + EMPTY_SHARE)
    return one.score + KIN_SHARE * (one.kin / most - one.kin)
