"""Which nodes kube-scheduler looks at: enough feasible ones, from where its last search ended."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lab.standins.scheduler.cache import Positions

LEAST_FEASIBLE = 100
"""minFeasibleNodesToFind of kube-scheduler: below it there is no sampling."""

LEAST_PERCENTAGE = 5
"""minFeasibleNodesPercentageToFind."""


def enough(nodes: int, percentage: int = 0) -> int:
    """How many feasible nodes kube-scheduler looks for. percentage: percentageOfNodesToScore; 0 is its default."""
    if nodes <= LEAST_FEASIBLE or percentage >= 100:
        return nodes
    adaptive = percentage or max(LEAST_PERCENTAGE, 50 - nodes // 125)
    return max(LEAST_FEASIBLE, nodes * adaptive // 100)


class Sampler:
    """Goes on where it left off."""

    def __init__(self, percentage: int = 0) -> None:
        self._percentage = percentage
        self._start = 0

    def feasible(self, fits: npt.NDArray[np.bool_]) -> Positions:
        """fits: of each node, in their order."""
        count = len(fits)
        order = np.roll(np.arange(count), -self._start)
        feasible = np.flatnonzero(fits[order])
        wanted = enough(count, self._percentage)
        visited = int(feasible[wanted - 1]) + 1 if len(feasible) >= wanted else count
        self._start = (self._start + visited) % count if count else 0
        chosen: Positions = order[feasible[:wanted]]
        return chosen

    def restart(self) -> None:
        """The nodes are others than before."""
        self._start = 0
