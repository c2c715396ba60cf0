"""How much of a member's memory is where its CPUs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class MemoryPlaces:
    """In bytes. near: on the NUMA nodes of its reservation, or where those have no memory on the nearest ones. away: on
    all others.
    """

    near: int = 0
    away: int = 0

    @classmethod
    def of(cls, by_node: Mapping[int, int], home: NumaSet) -> Self:
        """by_node: bytes on each NUMA node. home: those that are near."""
        near = sum(amount for node, amount in by_node.items() if node in home)
        return cls(near, sum(by_node.values()) - near)

    def __add__(self, other: MemoryPlaces) -> MemoryPlaces:
        return MemoryPlaces(self.near + other.near, self.away + other.away)

    @property
    def whole(self) -> int:
        return self.near + self.away


def home_of(machine: Machine, numa_nodes: NumaSet) -> NumaSet:
    """The memory that is near to these NUMA nodes; those that are gone from the machine have none."""
    there = NumaSet.of(node.id for node in machine.numa_nodes)
    return machine.nearest_mems(numa_nodes & there)


def size(amount: int) -> str:
    """So many bytes in words."""
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount / MIB:.0f} MiB"
