"""How many pods of each workload there are now, on which node: what a node's plan can't see, as it shows only who has
come. Under the cluster's lock.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from extender.state.pods import PodRow
from numakin.placement.optin.parsing import opted_in


class ReplicaCount(NamedTuple):
    """Of one workload. bound: to one node. unbound: to none yet."""

    workload: str
    bound: int
    unbound: int


class ReplicaCounts:
    """Of opted-in pods that the API server has, without those that have ended or are being deleted."""

    def __init__(self) -> None:
        self._pods: Counter[tuple[str, str]] = Counter()
        self._bound: Counter[str] = Counter()

    def changed(self, before: PodRow | None, after: PodRow | None) -> None:
        """None: the API server does not have it."""
        old, new = counted(before), counted(after)
        if old == new:
            return
        if new is not None:
            self._add(new, 1)
        if old is not None:
            self._add(old, -1)

    def _add(self, at: tuple[str, str], step: int) -> None:
        """By a step that takes as long however many workloads there are."""
        workload, node = at
        self._pods[at] += step
        if self._pods[at] <= 0:
            del self._pods[at]
        if node:
            self._bound[workload] += step
            if self._bound[workload] <= 0:
                del self._bound[workload]

    def on(self, node: str, workload: str) -> ReplicaCount:
        return ReplicaCount(workload, self._pods[workload, node], self._pods[workload, ""])

    def total(self, workload: str) -> int:
        """With a node or without."""
        return self._bound[workload] + self._pods[workload, ""]

    def copy(self) -> ReplicaCounts:
        """What changes there changes nothing here."""
        copied = ReplicaCounts()
        copied._pods, copied._bound = self._pods.copy(), self._bound.copy()
        return copied

    def anywhere(self, workload: str) -> ReplicaCount:
        """bound: to any node."""
        return ReplicaCount(workload, self._bound[workload], self._pods[workload, ""])


def counted(row: PodRow | None) -> tuple[str, str] | None:
    """Its workload and its node; None for a pod that does not count."""
    if row is None or row.ended or row.leaving or not opted_in(row.annotations):
        return None
    return row.workload, row.node
