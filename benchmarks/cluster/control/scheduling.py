"""kube-scheduler on a large cluster: it looks for enough feasible nodes, not for all, and starts where it left off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    """What a node has for pods: millicores, bytes."""

    cpu_milli: int
    memory: int


Floats = npt.NDArray[np.float64]


class SamplingScheduler:
    """Scores as `standins.scheduler`: least allocated (weight 1), spreading by host (weight 2), the extender's.

    offered: the nodes of the last question. Ties go to the last by name, where kube-scheduler draws lots, so that runs
    are alike. All nodes' figures are arrays: the real one is compiled, and 5,000 nodes cost it milliseconds.
    """

    def __init__(self, rooms: Mapping[str, Room], extender: Extender, *, weight: int = 5, percentage: int = 0) -> None:
        self.offered: list[str] = []
        self._extender, self._weight, self._percentage = extender, weight, percentage
        self._start = 0
        self._names = np.array([*rooms])
        self._at = {name: at for at, name in enumerate(rooms)}
        # Rows: CPU in millicores, bytes.
        self._whole = np.array([[room.cpu_milli, room.memory] for room in rooms.values()], dtype=np.float64).T
        self._asked = np.zeros_like(self._whole)
        self._replicas: dict[str, Floats] = {}

    def schedule(self, pod: Mapping[str, Any], workload: str, want: Room) -> str:
        """The node; the pod counts there at once, as in the scheduler's cache. DoesNotFitError when none has room."""
        found = self._sampled(want)
        feasible = self.offered = self._names[found].tolist()
        if feasible:
            feasible = self._extender.filter(pod, feasible)
        if not feasible:
            raise DoesNotFitError(f"no node has {want.cpu_milli / 1000:g} CPUs and {want.memory >> 20} MiB left")
        extra = self._extender.prioritize(pod, feasible) if len(feasible) > 1 else {}
        replicas = self._replicas.setdefault(workload, np.zeros(len(self._names)))
        if len(feasible) != len(found):
            found = np.array([self._at[one] for one in feasible])
        points = self._in_tree(found, want, replicas) + self._weight * 10 * np.array(
            [extra.get(one, 0) for one in feasible]
        )
        node: str = max(one for one, best in zip(feasible, (points == points.max()).tolist(), strict=True) if best)
        self._counted(node, want, replicas, 1)
        return node

    def forget(self, node: str, workload: str, want: Room) -> None:
        """A pod of this size is gone."""
        if node in self._at:
            self._counted(node, want, self._replicas[workload], -1)

    def remove(self, nodes: Iterable[str]) -> None:
        kept = ~np.isin(self._names, [*nodes])
        self._names, self._whole, self._asked = self._names[kept], self._whole[:, kept], self._asked[:, kept]
        self._replicas = {workload: row[kept] for workload, row in self._replicas.items()}
        self._at = {name: at for at, name in enumerate(self._names.tolist())}
        self._start = 0

    def _counted(self, node: str, want: Room, replicas: Floats, sign: int) -> None:
        at = self._at[node]
        self._asked[:, at] += sign * np.array((want.cpu_milli, want.memory))
        replicas[at] += sign

    def _sampled(self, want: Room) -> npt.NDArray[np.intp]:
        """Feasible nodes, as many as it looks for, from where the last search ended."""
        count = len(self._names)
        order = np.roll(np.arange(count), -self._start)
        asked = self._asked + np.array([[want.cpu_milli], [want.memory]])
        feasible = np.flatnonzero((asked <= self._whole).all(axis=0)[order])
        wanted = enough(count, self._percentage)
        looked_at = int(feasible[wanted - 1]) + 1 if len(feasible) >= wanted else count
        self._start = (self._start + looked_at) % count if count else 0
        return order[feasible[:wanted]]

    def _in_tree(self, found: npt.NDArray[np.intp], want: Room, replicas: Floats) -> Floats:
        asked = self._asked[:, found] + np.array([[want.cpu_milli], [want.memory]])
        free: Floats = (1 - asked / self._whole[:, found]).sum(axis=0)
        most = replicas[found].max(initial=0)
        return 50 * free + 200 * (1 - (replicas[found] / most if most else 0.0))
