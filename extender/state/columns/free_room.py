"""What is free in the cluster, for planning over all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from extender.state.columns.arrays import Bools, Floats
from numakin.placement.model.live_usage import Devices
from numakin.placement.plan.problem import CpuAndMemory


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
    groups. left: of each node, two rows, what kube-scheduler has left to give there: kubelets keep some of the machine
    for themselves and the system, on no NUMA node in particular.

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
        """What is free on each node, two rows: CPU and memory."""
        there = [np.maximum(free, 0.0).sum(axis=1) for free in (self.cpu, self.memory)]
        found: Floats = np.minimum(there, self.left)
        return found

    def take(
        self, node: int, at: int, asks: CpuAndMemory, pages: Iterable[tuple[int, int]] = (), devices: Devices = ()
    ) -> None:
        """For a pod, on the NUMA node at this position of a node. pages: bytes by their size."""
        self.give(node, at, (-asks[0], -asks[1]))
        for free, left in zip((self.cpu[node], self.memory[node]), self.left[:, node].tolist(), strict=True):
            np.minimum(free, left, out=free)
        for size, amount in pages:
            self.pages[size][node, at] -= amount
        for name, count in devices:
            self.devices[name].take(node, at, count)

    def give(self, node: int, at: int, room: CpuAndMemory) -> None:
        """There is so much more."""
        self.cpu[node, at] += room[0]
        self.memory[node, at] += room[1]
        self.left[0, node] += room[0]
        self.left[1, node] += room[1]

    def bound(self) -> None:
        """No NUMA node has more than its node has left."""
        for free, left in zip((self.cpu, self.memory), self.left, strict=True):
            np.minimum(free, left[:, None], out=free)

    def place(self, at: int) -> NumaPlace:
        """at: in the flattened arrays."""
        return NumaPlace(self.nodes[at // self.cpu.shape[1]], int(self.numa_node.flat[at]))


def _by_numa_node(free: Floats, near: Floats) -> Floats:
    summed: Floats = np.einsum("nk,nkw->nw", free, near)
    return summed
