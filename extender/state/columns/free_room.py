"""What is free in the cluster, for planning over all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from extender.state.columns.arrays import Bools, Floats
from extender.state.pods import Allocatable
from numakin.placement.model.live_usage import Devices
from numakin.placement.plan.problem import CpuAndMemory

CpuMemoryPods = tuple[float, float, float]
"""What kube-scheduler counts of pods: millicores, bytes, and how many; `Allocatable` is one of a node."""

NO_ROOM: CpuMemoryPods = (0, 0, 0)


class NumaPlace(NamedTuple):
    """One NUMA node of a node."""

    node: str
    numa_node: int


@dataclass(frozen=True, slots=True)
class FreeDevices:
    """Of one resource. free: how many, nodes x kinds: a node's of one kind are near to the same NUMA nodes. near: 1
    where those of a kind are near, or may be, nodes x kinds x NUMA nodes. most: how many were near to one NUMA node, on
    whichever node, before any was taken.
    """

    free: Floats
    near: Floats
    most: float

    @classmethod
    def of(cls, free: Floats, near: Floats) -> FreeDevices:
        return cls(free, near, float(_by_numa_node(free, near).max(initial=0.0)))

    @property
    def by_numa_node(self) -> Floats:
        """How many are near to each, nodes x NUMA nodes."""
        return _by_numa_node(self.free, self.near)

    def hold(self, asked: Sequence[int]) -> Bools:
        """The NUMA nodes near to which pods find their devices that ask for so many each, all there, nodes x NUMA
        nodes. One alone that asks for more than any NUMA node had is near as many as it can be.
        """
        near, need = self.by_numa_node, float(sum(asked))
        least: Floats | float = need
        if len(asked) == 1 and need > self.most:
            least = np.minimum(need, near.max(axis=1, keepdims=True, initial=0.0))
        there: Bools = (near >= least) & (self.free.sum(axis=1, keepdims=True) >= need)
        return there

    def on(self, node: int) -> FreeDevices:
        """Of one node alone; what is taken there is taken here."""
        return FreeDevices(self.free[node : node + 1], self.near[node : node + 1], self.most)

    def take(self, node: int, at: int, count: int) -> None:
        """at: the position of the NUMA node to which they are near while there are such, as `Live.less_devices`."""
        free, left = self.free[node], count
        for kind in np.argsort(self.near[node, :, at] == 0, kind="stable").tolist():
            given = min(left, free[kind])
            free[kind] -= given
            left -= given


@dataclass(frozen=True, slots=True)
class FreeRoom:
    """nodes: their names. numa_node: ids, -1 where a node has fewer. cpu, memory: what neither is requested nor
    expected to be used, in millicores and bytes; 0 where no newcomer is to go. groups: how many have members there.
    pages: bytes in hugepages of each size that was asked for, devices: of each resource; without what is held for
    groups. left: of each node, three rows, what kube-scheduler has left to give there, millicores, bytes and pods:
    kubelets keep some of the machine for themselves and the system, on no NUMA node in particular.

    Arrays of nodes x NUMA nodes, of its own: planning takes from them.
    """

    nodes: Sequence[str]
    numa_node: Floats
    cpu: Floats
    memory: Floats
    groups: Floats
    left: Floats
    pages: Mapping[int, Floats] = field(default_factory=dict)
    devices: Mapping[str, FreeDevices] = field(default_factory=dict)

    @property
    def of_nodes(self) -> Floats:
        """What is free on each node, three rows: CPU, memory, and how many pods it takes."""
        there = [np.maximum(free, 0.0).sum(axis=1) for free in (self.cpu, self.memory)]
        found: Floats = np.minimum([*there, self.left[2]], self.left)
        return found

    @property
    def left_on_nodes(self) -> dict[str, Allocatable]:
        """What kube-scheduler has left to give, by node."""
        return {node: Allocatable(*left) for node, left in zip(self.nodes, self.left.T.tolist(), strict=True)}

    def take(
        self,
        node: int,
        at: int,
        asks: CpuMemoryPods,
        pages: Iterable[tuple[int, int]] = (),
        devices: Devices = (),
        *,
        overhead: CpuAndMemory = (0, 0),
    ) -> None:
        """For pods, on the NUMA node at this position of a node. pages: bytes by their size. overhead: of the node."""
        self.left[:, node] -= asks
        self.left[:2, node] -= overhead
        for row, free in enumerate((self.cpu[node], self.memory[node])):
            free[at] -= asks[row]
            np.minimum(free, self.left[row, node], out=free)
        for size, amount in pages:
            self.pages[size][node, at] -= amount
        for name, count in devices:
            self.devices[name].take(node, at, count)

    def bound(self) -> None:
        """No NUMA node has more than its node has left."""
        for free, left in zip((self.cpu, self.memory), self.left[:2], strict=True):
            np.minimum(free, left[:, None], out=free)

    def place(self, at: int) -> NumaPlace:
        """at: in the flattened arrays."""
        return NumaPlace(self.nodes[at // self.cpu.shape[1]], int(self.numa_node.flat[at]))


def _by_numa_node(free: Floats, near: Floats) -> Floats:
    summed: Floats = np.einsum("nk,nkw->nw", free, near)
    return summed
