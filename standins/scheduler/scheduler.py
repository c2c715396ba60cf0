"""Where kube-scheduler would put a pod: its resource and spreading scores, and an extender's.

Only what matters for the choice is played: NodeResourcesFit (LeastAllocated, weight 1), PodTopologySpread by host
(weight 2), each 0 to 100, plus the extender's score x weight x 10, as kube-scheduler adds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Extender(Protocol):
    """What the scheduler asks of an extender."""

    def filter(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> list[str]: ...
    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]: ...


class DoesNotFitError(RuntimeError):
    """No node has room for the pod."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A node, and what was added up for each: (in-tree, the extender's 0..10)."""

    node: str
    scores: Mapping[str, tuple[float, int]]


@dataclass(slots=True)
class Scheduler:
    """allocatable: millicores by node. extender: None plays a cluster without one."""

    allocatable: Mapping[str, int]
    extender: Extender | None = None
    weight: int = 5
    _requested: Counter[str] = field(default_factory=Counter)
    _replicas: Counter[tuple[str, str]] = field(default_factory=Counter)

    def schedule(self, pod: Mapping[str, Any], workload: str, cpu_milli: int) -> Choice:
        """Chooses, and counts the pod there at once, as the scheduler's cache does."""
        feasible = [one for one, room in self.allocatable.items() if self._requested[one] + cpu_milli <= room]
        extra: dict[str, int] = {}
        if self.extender is not None and feasible:
            feasible = self.extender.filter(pod, feasible)
            # With one feasible node kube-scheduler does not ask for scores.
            extra = self.extender.prioritize(pod, feasible) if len(feasible) > 1 else {}
        if not feasible:
            raise DoesNotFitError(f"no node has {cpu_milli / 1000:g} CPUs left")
        scores = {one: (self._in_tree(one, workload, cpu_milli), extra.get(one, 0)) for one in feasible}
        node = max(feasible, key=lambda one: (scores[one][0] + scores[one][1] * self.weight * 10, one))
        self._requested[node] += cpu_milli
        self._replicas[node, workload] += 1
        return Choice(node, scores)

    def _in_tree(self, node: str, workload: str, cpu_milli: int) -> float:
        least_allocated = 100 * (1 - (self._requested[node] + cpu_milli) / self.allocatable[node])
        most = max(self._replicas[one, workload] for one in self.allocatable)
        spread = 100.0 if most == 0 else 100 * (1 - self._replicas[node, workload] / most)
        return least_allocated + 2 * spread
