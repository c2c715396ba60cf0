"""kube-scheduler's cache: what its pods request on each node, those included whose binding is still on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]


MOST_PODS = 250
"""Places of a node, as kubelets of large machines are told (maxPods; 110 if they are told nothing)."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has for pods, or what a pod requests: millicores, bytes, and places, of which a pod takes one."""

    cpu_milli: int
    memory: int
    pods: int = 1

    @property
    def column(self) -> Floats:
        return np.array([[self.cpu_milli], [self.memory], [self.pods]], dtype=np.float64)


class NodeCache:
    """All nodes' figures are arrays: the real one is compiled, and 5,000 nodes cost it milliseconds.

    names: in their order; a position is an index into it.
    """

    def __init__(self, rooms: Mapping[str, Room]) -> None:
        self.names: list[str] = [*rooms]
        self._positions = {name: at for at, name in enumerate(rooms)}
        self._allocatable = np.hstack([room.column for room in rooms.values()])
        self._requested = np.zeros_like(self._allocatable)
        self._replicas: dict[str, Floats] = {}

    def positions(self, names: Iterable[str]) -> Positions:
        return np.array([self._positions[name] for name in names], dtype=np.intp)

    def fits(self, want: Room) -> npt.NDArray[np.bool_]:
        """Of each node, whether it has room for the pod."""
        fits: npt.NDArray[np.bool_] = np.all(self._with(want) <= self._allocatable, axis=0)
        return fits

    def shares(self, at: Positions, want: Room) -> Floats:
        """Rows of CPU and memory: the share of each of these nodes that is requested once the pod is there."""
        shares: Floats = self._with(want)[:2, at] / self._allocatable[:2, at]
        return shares

    def replicas(self, at: Positions, workload: str) -> Floats:
        """Of the workload, on each of these nodes."""
        return self._of(workload)[at]

    def assume(self, node: str, workload: str, want: Room) -> None:
        """The pod counts there from now on, though it is not bound yet."""
        self._count(node, workload, want, 1)

    def forget(self, node: str, workload: str, want: Room) -> None:
        """A pod of this size is gone."""
        if node in self._positions:
            self._count(node, workload, want, -1)

    def remove(self, nodes: Iterable[str]) -> None:
        gone = {*nodes}
        kept = np.array([name not in gone for name in self.names])
        self._allocatable, self._requested = self._allocatable[:, kept], self._requested[:, kept]
        self._replicas = {workload: row[kept] for workload, row in self._replicas.items()}
        self.names = [name for name in self.names if name not in gone]
        self._positions = {name: at for at, name in enumerate(self.names)}

    def _with(self, want: Room) -> Floats:
        after: Floats = self._requested + want.column
        return after

    def _of(self, workload: str) -> Floats:
        return self._replicas.setdefault(workload, np.zeros(len(self.names)))

    def _count(self, node: str, workload: str, want: Room, sign: int) -> None:
        at = self._positions[node]
        self._requested[:, [at]] += sign * want.column
        self._of(workload)[at] += sign
