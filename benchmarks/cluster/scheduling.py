"""kube-scheduler on a large cluster: it looks for enough feasible nodes, not for all, and starts where it left off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from standins.scheduler.scheduler import DoesNotFitError, Extender

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


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has for pods: thousandths of a CPU, bytes."""

    cpu_milli: int
    memory: int


@dataclass(slots=True)
class SamplingScheduler:
    """Scores as `standins.scheduler`: least allocated (weight 1), spreading by host (weight 2), the extender's.

    rooms: by node. offered: the nodes of the last question. Ties go to the last by name, where kube-scheduler draws
    lots, so that runs are alike.
    """

    rooms: dict[str, Room]
    extender: Extender
    weight: int = 5
    percentage: int = 0
    offered: list[str] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _start: int = 0
    _cpu: Counter[str] = field(default_factory=Counter)
    _memory: Counter[str] = field(default_factory=Counter)
    _replicas: dict[str, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = list(self.rooms)

    def schedule(self, pod: Mapping[str, Any], workload: str, want: Room) -> str:
        """The node; the pod counts there at once, as in the scheduler's cache. DoesNotFitError when none has room."""
        feasible = self.offered = self._sampled(want)
        if feasible:
            feasible = self.extender.filter(pod, feasible)
        if not feasible:
            raise DoesNotFitError(f"no node has {want.cpu_milli / 1000:g} CPUs and {want.memory >> 20} MiB left")
        extra = self.extender.prioritize(pod, feasible) if len(feasible) > 1 else {}
        replicas = self._replicas.setdefault(workload, Counter())
        most = max((replicas[one] for one in feasible), default=0)
        points = {
            one: self._in_tree(one, want, replicas[one] / most if most else 0.0) + extra.get(one, 0) * self.weight * 10
            for one in feasible
        }
        node = max(feasible, key=lambda one: (points[one], one))
        self._cpu[node] += want.cpu_milli
        self._memory[node] += want.memory
        replicas[node] += 1
        return node

    def forget(self, node: str, workload: str, want: Room) -> None:
        """A pod of this size is gone."""
        self._cpu[node] -= want.cpu_milli
        self._memory[node] -= want.memory
        self._replicas[workload][node] -= 1

    def remove(self, nodes: Iterable[str]) -> None:
        for one in nodes:
            del self.rooms[one]
        self._names = list(self.rooms)
        self._start = 0

    def _sampled(self, want: Room) -> list[str]:
        count = len(self._names)
        wanted, looked_at = enough(count, self.percentage), 0
        found: list[str] = []
        while looked_at < count and len(found) < wanted:
            name = self._names[(self._start + looked_at) % count]
            room = self.rooms[name]
            if self._cpu[name] + want.cpu_milli <= room.cpu_milli and self._memory[name] + want.memory <= room.memory:
                found.append(name)
            looked_at += 1
        self._start = (self._start + looked_at) % count if count else 0
        return found

    def _in_tree(self, node: str, want: Room, crowded: float) -> float:
        room = self.rooms[node]
        cpu = 1 - (self._cpu[node] + want.cpu_milli) / room.cpu_milli
        memory = 1 - (self._memory[node] + want.memory) / room.memory
        return 50 * (cpu + memory) + 200 * (1 - crowded)
