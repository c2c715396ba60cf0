"""How many pods of each workload there are now, on which node: what a node's plan can't see, as it shows only who has
come. Under the cluster's lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from extender.state.pods import PodRow
from numakin.placement.optin.parsing import opted_in
from numakin.placement.plan.problem import CpuAndMemory

NOTHING: CpuAndMemory = (0, 0)

MOST_LEFT = 1024
"""Workloads of one namespace that have left a node and are remembered; the oldest go first."""


class ReplicaCount(NamedTuple):
    """Of one workload. bound: to one node. unbound: to none yet."""

    workload: str
    bound: int
    unbound: int


class ReplicaCounts:
    """Of opted-in pods that the API server has, without those that have ended or are being deleted. pods: by node, all
    that are bound there and have not ended; overhead: what they take beside their containers, where that is anything.
    beside: of one pod, by workload, as the latest of those that count has it, where that is anything.
    """

    def __init__(self) -> None:
        self.pods: Counter[str] = Counter()
        self.overhead: dict[str, CpuAndMemory] = {}
        self.beside: dict[str, CpuAndMemory] = {}
        self._pods: Counter[tuple[str, str]] = Counter()
        self._bound: Counter[str] = Counter()
        self._in_namespace: Counter[str] = Counter()
        self._left: dict[str, dict[tuple[str, str], None]] = {}
        """By namespace, as keys of `_pods`, the latest last."""

    def changed(self, before: PodRow | None, after: PodRow | None) -> None:
        """None: the API server does not have it."""
        self._bind(_bound_to(before), _bound_to(after))
        for row, step in ((before, -1), (after, 1)):
            if row is not None and row.beside != NOTHING and (node := _bound_to(row)):
                self._count_overhead(node, row, step)
        old, new = counted(before), counted(after)
        if old == new:
            return
        if new is not None:
            self._add(new, 1)
        if old is not None:
            self._add(old, -1)
        for at, row in ((old, None), (new, after)):
            if at is not None:
                self._note_beside(at[0], row)

    def _bind(self, left: str, node: str) -> None:
        if left == node:
            return
        if left:
            self.pods[left] -= 1
            if not self.pods[left]:
                del self.pods[left]
        if node:
            self.pods[node] += 1

    def _count_overhead(self, node: str, row: PodRow, step: int) -> None:
        cpu, memory = self.overhead.get(node, NOTHING)
        self.overhead[node] = cpu + step * row.beside[0], memory + step * row.beside[1]
        if self.overhead[node] == NOTHING:
            del self.overhead[node]

    def _note_beside(self, workload: str, row: PodRow | None) -> None:
        """row: a pod of it that counts from now on; None: one counts no more."""
        if row is not None and row.beside != NOTHING:
            self.beside[workload] = row.beside
        elif row is not None or not self.total(workload):
            self.beside.pop(workload, None)

    def _add(self, at: tuple[str, str], step: int) -> None:
        """By a step that takes as long however many workloads there are."""
        workload, node = at
        self._pods[at] += step
        self._remember(at, step)
        if self._pods[at] <= 0:
            del self._pods[at]
        if node:
            self._bound[workload] += step
            if self._bound[workload] <= 0:
                del self._bound[workload]

    def _remember(self, at: tuple[str, str], step: int) -> None:
        """Which workloads have left a node, while others of their namespace are anywhere: what has gone as a whole is
        expected to come back as it was.
        """
        namespace = at[0].partition("/")[0]
        self._in_namespace[namespace] += step
        if self._in_namespace[namespace] <= 0:
            del self._in_namespace[namespace]
            self._left.pop(namespace, None)
        elif at[1] and self._pods[at] <= 0:
            left = self._left.setdefault(namespace, {})
            left[at] = None
            if len(left) > MOST_LEFT:
                del left[next(iter(left))]
        elif namespace in self._left:
            self._left[namespace].pop(at, None)

    def left(self, node: str, namespace: str) -> Iterator[str]:
        """Its workloads that had pods there and have none now, the latest first."""
        return (workload for workload, where in reversed(self._left.get(namespace, {})) if where == node)

    def on(self, node: str, workload: str) -> ReplicaCount:
        return ReplicaCount(workload, self._pods[workload, node], self._pods[workload, ""])

    def total(self, workload: str) -> int:
        """With a node or without."""
        return self._bound[workload] + self._pods[workload, ""]

    def copy(self) -> ReplicaCounts:
        """What changes there changes nothing here."""
        copied = ReplicaCounts()
        copied.pods, copied._pods, copied._bound = self.pods.copy(), self._pods.copy(), self._bound.copy()
        copied.overhead, copied.beside = self.overhead.copy(), self.beside.copy()
        copied._in_namespace = self._in_namespace.copy()
        copied._left = {namespace: left.copy() for namespace, left in self._left.items()}
        return copied

    def anywhere(self, workload: str) -> ReplicaCount:
        """bound: to any node."""
        return ReplicaCount(workload, self._bound[workload], self._pods[workload, ""])


def _bound_to(row: PodRow | None) -> str:
    """Empty where it takes up no node."""
    return row.node if row is not None and not row.ended else ""


def counted(row: PodRow | None) -> tuple[str, str] | None:
    """Its workload and its node; None for a pod that does not count."""
    if row is None or row.ended or row.leaving or not opted_in(row.annotations):
        return None
    return row.workload, row.node
