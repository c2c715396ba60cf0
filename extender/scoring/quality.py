"""From decisions' scores, 0 to 1, to kube-scheduler's integers from 0 to 10.

A group spread over three nodes gives none of them a kin share over a half, and a first member has no kin at all:
written out as they are, such scores would leave the upper end unused, and the in-tree plugins would outvote them. So
the kin's part is taken relative to the best of the offered nodes, and where none has kin, the rest has the whole range.
"""

from __future__ import annotations

import numpy as np

from extender.scoring.weighing import NodeScores
from extender.state.cells import Floats
from placement.decide.scoring import EMPTY_SHARE, KIN_SHARE, ROOM_SHARE

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""


def integer_scores(weighed: NodeScores, factors: Floats) -> list[int]:
    """In their order; factors: by age. Whoever is behind the best node in kin is behind it in points too."""
    score, kin = weighed.score, weighed.kin
    most = float(kin.max(initial=0.0))
    stretched = score + KIN_SHARE * (kin / most - kin) if most else score / (ROOM_SHARE + EMPTY_SHARE)
    exact = stretched * factors
    points = np.rint(BEST * np.minimum(1.0, exact))
    if most:
        best = int(exact.argmax())
        points[best] = max(points[best], 1.0)
        points = np.where(kin < kin[best] - 1e-9, np.minimum(points, points[best] - 1), points)
    return [*map(int, points.tolist())]
