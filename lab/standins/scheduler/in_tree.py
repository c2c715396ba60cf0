"""kube-scheduler's own scores that differ between nodes by default, each a whole number from 0 to 100.

NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation count once, PodTopologySpread with its default
constraint over host names twice. Whole numbers matter: nodes that are nearly alike end equal, and lots are drawn.
"""

from __future__ import annotations

import numpy as np

from lab.standins.scheduler.cache import Floats

MOST = 100
"""MaxNodeScore."""

SPREAD_WEIGHT = 2

MAX_SKEW = 3
"""Of the default constraint over host names."""


def in_tree(shares: Floats, replicas: Floats) -> Floats:
    """shares: rows of CPU and memory, requested of each node. replicas: of the pod's workload on each."""
    return _least_allocated(shares) + _balanced(shares) + SPREAD_WEIGHT * _spread(replicas)


def _least_allocated(shares: Floats) -> Floats:
    """The mean of what is left of each resource."""
    per_resource = np.floor(MOST * (1 - shares))
    score: Floats = np.floor(per_resource.mean(axis=0))
    return score


def _balanced(shares: Floats) -> Floats:
    """Less, the further apart the resources are used: by their standard deviation."""
    score: Floats = np.floor(MOST * (1 - shares.std(axis=0)))
    return score


def _spread(replicas: Floats) -> Floats:
    """Replicas on a node count by the logarithm of how many nodes there are, then all is scaled to the most of them."""
    if not len(replicas):
        return replicas
    counted = np.rint(replicas * np.log(len(replicas) + 2) + MAX_SKEW - 1)
    score: Floats = np.floor(MOST * (counted.max() + counted.min() - counted) / counted.max())
    return score
