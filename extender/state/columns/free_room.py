"""What is free in the cluster, for planning over all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.state.columns.arrays import Floats


class NumaPlace(NamedTuple):
    """One NUMA node of a node."""

    node: str
    numa_node: int


@dataclass(frozen=True, slots=True)
class FreeRoom:
    """nodes: their names. numa_node: ids, -1 where a node has fewer. cpu, memory: what neither is requested nor
    expected to be used, in millicores and bytes; 0 where no newcomer is to go. groups: how many have members there.
    pages: bytes in hugepages of each size that was asked for, without what is held for groups.

    Arrays of nodes x NUMA nodes, of its own: planning takes from them.
    """

    nodes: Sequence[str]
    numa_node: Floats
    cpu: Floats
    memory: Floats
    groups: Floats
    pages: Mapping[int, Floats] = field(default_factory=dict)

    def place(self, at: int) -> NumaPlace:
        """at: in the flattened arrays."""
        return NumaPlace(self.nodes[at // self.cpu.shape[1]], int(self.numa_node.flat[at]))
