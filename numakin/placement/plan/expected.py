"""How many replicas of a workload are expected: the one rule that both halves plan by.

As many as there were at most in the last ten minutes, which a rolling update or a node's drain may take; after that as
many as there are. A workload whose replicas are all gone is expected to come back as it was. When it is forgotten is
its owner's to say: a cluster keeps what its traffic is remembered of, a node forgets who may have gone to another. A
node that is sent how many there are now expects no fewer than are bound to it, and no more than there can be.
"""

from __future__ import annotations

from dataclasses import dataclass

PEAK_S = 600.0
"""Seconds for which the largest number of replicas is expected again."""


@dataclass(frozen=True, slots=True)
class ExpectedPods:
    """Of a workload on one node: the pods that are bound to it, and those that may come besides as they are bound to no
    node yet.
    """

    bound: int
    unbound: int

    def limits(self, replicas: int) -> int:
        """What is expected where so many would be without it."""
        return min(max(replicas, self.bound), self.bound + self.unbound)


@dataclass(frozen=True, slots=True)
class Peak:
    """replicas: so many are expected. since: when there were so many last, in seconds of any clock that never runs
    backwards.
    """

    replicas: int = 0
    since: float = 0.0

    def after(self, replicas: int, now: float) -> Peak:
        """With so many replicas there now."""
        if replicas >= self.replicas or (replicas and now - self.since > PEAK_S):
            return Peak(replicas, now)
        return self
