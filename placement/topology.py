"""The machine: NUMA nodes with their CPUs and memory, SMT siblings, shared caches, distances.

A `Machine` is what sysfs tells, checked once: whoever holds one need not check again. A machine without NUMA is one with a single NUMA node 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from placement.cpuset import CpuSet, NumaSet
from placement.errors import BadTopology

LOCAL_DISTANCE = 10
"""A NUMA node's distance to itself (ACPI 6.5, 5.2.17: the SLIT's diagonal is 10, all else is relative to it)."""

UNREACHABLE = 255
"""The SLIT's value for "no connection"."""

REMOTE_DISTANCE = 20
"""The kernel's REMOTE_DISTANCE: what it assumes between two NUMA nodes when the firmware says nothing."""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: its online CPUs (none on a memory-only one), its memory in bytes (0 on a CPU-only one).

    `distances` maps every NUMA node's id, its own too, to the SLIT distance; `hugepages` maps page size to bytes reserved in pages of that size.
    """

    id: int
    cpus: CpuSet
    memory: int
    distances: Mapping[int, int] = field(hash=False)
    hugepages: Mapping[int, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.memory < 0:
            raise BadTopology(f"NUMA node {self.id} has negative memory")


@dataclass(frozen=True)
class Machine:
    """The hardware of one node.

    numa_nodes: ascending by id; ids may have gaps (POWER numbers 0, 8, ...).
    cores: the online SMT siblings of each physical core. caches: the online CPUs that share each last-level cache.
    """

    numa_nodes: tuple[NumaNode, ...]
    cores: tuple[CpuSet, ...] = ()
    caches: tuple[CpuSet, ...] = ()
    sockets: tuple[CpuSet, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        ids = [node.id for node in self.numa_nodes]
        if not ids:
            raise BadTopology("a machine has at least one NUMA node")
        if ids != sorted(set(ids)):
            raise BadTopology(f"NUMA node ids must ascend without repeats, not {ids}")
        self._check_cpus()
        for node in self.numa_nodes:
            if sorted(node.distances) != ids:
                raise BadTopology(
                    f"NUMA node {node.id} has distances to {sorted(node.distances)}, the machine has {ids}"
                )
            if any(not 0 < far <= UNREACHABLE for far in node.distances.values()):
                raise BadTopology(f"NUMA node {node.id} has a distance outside 1..{UNREACHABLE}")

    def _check_cpus(self) -> None:
        seen = CpuSet()
        for node in self.numa_nodes:
            if not node.cpus.isdisjoint(seen):
                raise BadTopology(f"CPUs {node.cpus & seen} are on NUMA node {node.id} and on another")
            seen |= node.cpus
        if not seen:
            raise BadTopology("a machine has at least one online CPU")
        for kind in ("cores", "caches", "sockets"):
            for group in getattr(self, kind):
                if not group <= seen:
                    raise BadTopology(f"{kind} name CPUs {group - seen}, which are not online")

    @cached_property
    def cpus(self) -> CpuSet:
        """Every online CPU."""
        mask = 0
        for node in self.numa_nodes:
            mask |= node.cpus.mask
        return CpuSet(mask)

    @cached_property
    def mems(self) -> NumaSet:
        """The NUMA nodes that have memory: all that `cpuset.mems` may name."""
        return NumaSet.of(node.id for node in self.numa_nodes if node.memory)

    @cached_property
    def cpu_nodes(self) -> NumaSet:
        """The NUMA nodes that have online CPUs."""
        return NumaSet.of(node.id for node in self.numa_nodes if node.cpus)

    @cached_property
    def _by_id(self) -> dict[int, NumaNode]:
        return {node.id: node for node in self.numa_nodes}

    @cached_property
    def _core_of(self) -> dict[int, CpuSet]:
        return {cpu: core for core in self.cores for cpu in core}

    @cached_property
    def _node_of(self) -> dict[int, int]:
        return {cpu: node.id for node in self.numa_nodes for cpu in node.cpus}

    def node(self, numa_node: int) -> NumaNode:
        """The NUMA node with that id; KeyError when there is none."""
        return self._by_id[numa_node]

    def node_of(self, cpu: int) -> int:
        """The id of the NUMA node of an online CPU; KeyError otherwise."""
        return self._node_of[cpu]

    def core_of(self, cpu: int) -> CpuSet:
        """The online siblings of a CPU, itself included."""
        return self._core_of.get(cpu) or CpuSet.of((cpu,))

    def nodes_of(self, cpus: CpuSet) -> NumaSet:
        """The NUMA nodes on which these CPUs lie."""
        return NumaSet.of(node.id for node in self.numa_nodes if not node.cpus.isdisjoint(cpus))

    def cpus_of(self, numa_nodes: NumaSet) -> CpuSet:
        """The online CPUs of these NUMA nodes."""
        mask = 0
        for one in numa_nodes:
            mask |= self._by_id[one].cpus.mask
        return CpuSet(mask)

    def distance(self, a: int, b: int) -> int:
        return self._by_id[a].distances[b]

    def closeness(self, a: int, b: int) -> float:
        """1 at home, falling with the SLIT distance: 10 / distance. 0 where the SLIT says there is no connection."""
        far = self._by_id[a].distances[b]
        return 0.0 if far == UNREACHABLE else min(1.0, LOCAL_DISTANCE / far)

    def nearest_mems(self, numa_nodes: NumaSet) -> NumaSet:
        """These NUMA nodes' own memory; where one has none, the nearest NUMA node with memory that also has CPUs, else any with memory."""
        found = NumaSet()
        for one in numa_nodes:
            if one in self.mems:
                found |= NumaSet.of((one,))
            elif self.mems:
                candidates = (self.mems & self.cpu_nodes) or self.mems
                found |= NumaSet.of((min(candidates, key=lambda other: (self.distance(one, other), other)),))
        return found


def uniform_distances(ids: tuple[int, ...]) -> dict[int, dict[int, int]]:
    """The distances that the kernel assumes without a SLIT: 10 at home, 20 elsewhere."""
    return {a: {b: LOCAL_DISTANCE if a == b else REMOTE_DISTANCE for b in ids} for a in ids}
