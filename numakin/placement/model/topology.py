"""The machine: NUMA nodes with their CPUs and memory, SMT siblings, shared caches, distances.

A `Machine` is what sysfs shows, checked once: its holders need not check again. A machine without NUMA is one
with a single NUMA node 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import BadTopology

LOCAL_DISTANCE = 10
"""A NUMA node's distance to itself (ACPI 6.5, 5.2.17: the SLIT's diagonal is 10, all else is relative to it)."""

UNREACHABLE = 255
"""The SLIT's value for "no connection"."""

REMOTE_DISTANCE = 20
"""The kernel's REMOTE_DISTANCE: what it assumes between two NUMA nodes when the firmware says nothing."""

MOST_NUMA_NODES = 1024
"""The kernel's largest MAX_NUMNODES (CONFIG_NODES_SHIFT <= 10)."""

LEAST_CPUS = 4
"""A cache domain has at least so many: an EPYC with two cores a cache still does. The pairs of an Altra, which share a
snoop filter and no cache, are none: so narrow a cpuset costs more than a near cache gains.
"""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node: its online CPUs (none on a memory-only one), its memory in bytes (0 on a CPU-only one).

    distances: every NUMA node's id, its own too, to the SLIT distance. hugepages: page size to the bytes that are set
    aside in pages of that size; they are part of `memory`. isolated: online CPUs beside `cpus` that are left to what
    asks for them by name. withheld: no container is bound to the memory here: it is a device's, or a tier that the
    operator has not allowed.
    """

    id: int
    cpus: CpuSet
    memory: int
    distances: Mapping[int, int] = field(hash=False)
    hugepages: Mapping[int, int] = field(default_factory=dict, hash=False)
    isolated: CpuSet = CpuSet()
    withheld: bool = False

    def __post_init__(self) -> None:
        if self.memory < 0:
            raise BadTopology(f"NUMA node {self.id} has negative memory")
        if any(size <= 0 or amount < 0 for size, amount in self.hugepages.items()):
            raise BadTopology(f"NUMA node {self.id} has hugepages of {dict(self.hugepages)}")

    @property
    def all_cpus(self) -> CpuSet:
        """The isolated ones too."""
        return self.cpus | self.isolated

    @property
    def ordinary_memory(self) -> int:
        """Bytes that are not set aside in hugepages."""
        return max(0, self.memory - sum(self.hugepages.values())) if self.hugepages else self.memory


@dataclass(frozen=True)
class Machine:
    """The hardware of one node.

    numa_nodes: ascending by id; ids may have gaps (POWER numbers 0, 8, ...).
    cores: the online SMT siblings of each physical core. caches: the online CPUs that share each last-level cache.
    clusters: those of each group of cores within a die that the kernel knows to be nearer to each other. All with the
    isolated ones.
    """

    numa_nodes: tuple[NumaNode, ...]
    cores: tuple[CpuSet, ...] = ()
    caches: tuple[CpuSet, ...] = ()
    sockets: tuple[CpuSet, ...] = ()
    name: str = ""
    clusters: tuple[CpuSet, ...] = ()

    def __post_init__(self) -> None:
        ids = [node.id for node in self.numa_nodes]
        if not ids:
            raise BadTopology("a machine has at least one NUMA node")
        if len(ids) > MOST_NUMA_NODES:
            raise BadTopology(f"a machine has at most {MOST_NUMA_NODES} NUMA nodes, not {len(ids)}")
        if ids != sorted(set(ids)):
            raise BadTopology(f"NUMA node ids must ascend without repeats, not {ids}")
        self._check_cpus()
        for node in self.numa_nodes:
            if sorted(node.distances) != ids:
                named = sorted(node.distances)
                raise BadTopology(f"NUMA node {node.id} has distances to {named}, the machine has {ids}")
            if any(not 0 < far <= UNREACHABLE for far in node.distances.values()):
                raise BadTopology(f"NUMA node {node.id} has a distance outside 1..{UNREACHABLE}")

    def _check_cpus(self) -> None:
        seen = CpuSet()
        for node in self.numa_nodes:
            if not node.cpus.isdisjoint(node.isolated):
                raise BadTopology(f"CPUs {node.cpus & node.isolated} are isolated, and not")
            if not node.all_cpus.isdisjoint(seen):
                raise BadTopology(f"CPUs {node.all_cpus & seen} are on NUMA node {node.id} and on another")
            seen |= node.all_cpus
        if not any(node.cpus for node in self.numa_nodes):
            raise BadTopology("a machine has at least one online CPU that is not isolated")
        for kind in ("cores", "caches", "sockets", "clusters"):
            grouped = CpuSet()
            for group in getattr(self, kind):
                if not group <= seen:
                    raise BadTopology(f"{kind} name CPUs {group - seen}, which are not online")
                if not group.isdisjoint(grouped):
                    raise BadTopology(f"{kind} name CPUs {group & grouped} twice")
                grouped |= group

    @cached_property
    def ids(self) -> NumaSet:
        """Of all its NUMA nodes."""
        return NumaSet.of(node.id for node in self.numa_nodes)

    @cached_property
    def cpus(self) -> CpuSet:
        """Every online CPU that containers are given."""
        return CpuSet.of(cpu for node in self.numa_nodes for cpu in node.cpus)

    @cached_property
    def all_cpus(self) -> CpuSet:
        """Every online CPU: what `cpuset.cpus` comes to where it is not set."""
        return CpuSet.of(cpu for node in self.numa_nodes for cpu in node.all_cpus)

    @cached_property
    def mems(self) -> NumaSet:
        """The NUMA nodes whose memory containers are given."""
        return NumaSet.of(node.id for node in self.numa_nodes if node.memory and not node.withheld)

    @cached_property
    def all_mems(self) -> NumaSet:
        """Every NUMA node with memory: what `cpuset.mems` comes to where it is not set."""
        return NumaSet.of(node.id for node in self.numa_nodes if node.memory)

    @cached_property
    def cpu_nodes(self) -> NumaSet:
        """The NUMA nodes that have CPUs which containers are given."""
        return NumaSet.of(node.id for node in self.numa_nodes if node.cpus)

    @cached_property
    def _by_id(self) -> dict[int, NumaNode]:
        return {node.id: node for node in self.numa_nodes}

    @cached_property
    def _core_of(self) -> dict[int, CpuSet]:
        return {cpu: core for core in self.cores for cpu in core}

    @cached_property
    def _node_of(self) -> dict[int, int]:
        return {cpu: node.id for node in self.numa_nodes for cpu in node.all_cpus}

    @cached_property
    def cpu_counts(self) -> dict[int, int]:
        """How many CPUs of each NUMA node containers are given."""
        return {node.id: len(node.cpus) for node in self.numa_nodes}

    @cached_property
    def closenesses(self) -> dict[int, dict[int, float]]:
        """`closeness` as a table: from, to."""
        return {
            node.id: {
                other: 0.0 if far == UNREACHABLE else min(1.0, LOCAL_DISTANCE / far)
                for other, far in node.distances.items()
            }
            for node in self.numa_nodes
        }

    @cached_property
    def outward(self) -> dict[int, tuple[int, ...]]:
        """For each NUMA node with CPUs all of them, itself first, then by distance. Of those equally far the ones on
        its own socket come first: firmware without a SLIT does not distinguish them.
        """

        def order(home: int, other: int) -> tuple[bool, int, bool, int]:
            return other != home, self.distance(home, other), not self.same_socket(home, other), other

        return {home: tuple(sorted(self.cpu_nodes, key=partial(order, home))) for home in self.cpu_nodes}

    @cached_property
    def sockets_of(self) -> dict[int, frozenset[int]]:
        """For each NUMA node the numbers of the sockets that its CPUs lie on; empty where that is not known."""
        return {
            node.id: frozenset(at for at, socket in enumerate(self.sockets) if not socket.isdisjoint(node.all_cpus))
            for node in self.numa_nodes
        }

    @cached_property
    def cores_by_node(self) -> dict[int, tuple[int, ...]]:
        """For each NUMA node the masks of its physical cores; a CPU whose core is unknown is one by itself.

        Isolated siblings are in them, so that no core with one is ever wholly free.
        """
        return {
            node.id: tuple(sorted({self.core_of(cpu).mask & node.all_cpus.mask for cpu in node.cpus}, key=_lowest_bit))
            for node in self.numa_nodes
        }

    @cached_property
    def core_sizes(self) -> frozenset[int]:
        """How many CPUs a physical core has: one number, except where siblings are offline or kinds of cores mixed."""
        return frozenset(core.bit_count() for cores in self.cores_by_node.values() for core in cores)

    @cached_property
    def caches_by_node(self) -> dict[int, tuple[int, ...]]:
        """For each NUMA node the masks of its CPUs by last-level cache; those whose cache is unknown come as one."""
        by_node = {}
        for node in self.numa_nodes:
            masks = _parts(node.cpus, self.caches)
            rest = node.cpus.mask & ~sum(masks)
            by_node[node.id] = tuple(sorted([*masks, rest] if rest else masks, key=_lowest_bit))
        return by_node

    @cached_property
    def cache_domains(self) -> dict[int, tuple[int, ...]]:
        """For each NUMA node the masks of its CPUs by last-level cache, or by cluster where they all share one; empty
        where it has no two such parts.
        """
        caches, clusters = self.caches, self.clusters
        return {node.id: _domains(node.cpus, caches) or _domains(node.cpus, clusters) for node in self.numa_nodes}

    @cached_property
    def lower_tier(self) -> dict[int, NumaSet]:
        """For each NUMA node with CPUs the memory-only ones (CXL, HBM) nearest to it: where its memory may spill."""
        by_node = dict.fromkeys(self.cpu_nodes, NumaSet())
        for far in self.mems - NumaSet.of(node.id for node in self.numa_nodes if node.all_cpus):
            near = min(self.distance(cpu_node, far) for cpu_node in self.cpu_nodes)
            for cpu_node in self.cpu_nodes:
                if self.distance(cpu_node, far) == near:
                    by_node[cpu_node] |= NumaSet.of((far,))
        return by_node

    @cached_property
    def reach(self) -> dict[int, NumaSet]:
        """For each NUMA node with CPUs those whose memory a home there may have, on the lower tier too."""
        return {cpu_node: self._nearest[cpu_node] | self.lower_tier[cpu_node] for cpu_node in self.cpu_nodes}

    @cached_property
    def _nearest(self) -> dict[int, NumaSet]:
        """For each NUMA node the one whose memory is local to it."""
        by_node = {}
        choices = (self.mems & self.cpu_nodes) or self.mems
        for node in self.numa_nodes:
            if node.id in self.mems or not choices:
                by_node[node.id] = NumaSet.of((node.id,)) & self.mems
            else:
                nearest = min(choices, key=lambda other: (self.distance(node.id, other), other))
                by_node[node.id] = NumaSet.of((nearest,))
        return by_node

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
        return NumaSet.of(node.id for node in self.numa_nodes if not node.all_cpus.isdisjoint(cpus))

    def cpus_of(self, numa_nodes: NumaSet) -> CpuSet:
        """The CPUs of these NUMA nodes that containers are given."""
        mask = 0
        for numa_node in numa_nodes:
            mask |= self._by_id[numa_node].cpus.mask
        return CpuSet(mask)

    def distance(self, a: int, b: int) -> int:
        return self._by_id[a].distances[b]

    def closeness(self, a: int, b: int) -> float:
        """1 at home, falling with the SLIT distance: 10 / distance. 0 where the SLIT says there is no connection."""
        return self.closenesses[a][b]

    def same_socket(self, a: int, b: int) -> bool:
        """Whether two NUMA nodes are known to have CPUs on one socket."""
        return not self.sockets_of[a].isdisjoint(self.sockets_of[b])

    def nearest_mems(self, numa_nodes: NumaSet) -> NumaSet:
        """These NUMA nodes' own memory; where one has none, that of the nearest with CPUs, else of the nearest."""
        if len(numa_nodes) == 1:
            return self._nearest[numa_nodes.lowest]
        mask = 0
        for numa_node in numa_nodes:
            mask |= self._nearest[numa_node].mask
        return NumaSet(mask)


def uniform_distances(ids: tuple[int, ...]) -> dict[int, dict[int, int]]:
    """The distances that the kernel assumes without a SLIT: 10 at home, 20 elsewhere."""
    return {a: {b: LOCAL_DISTANCE if a == b else REMOTE_DISTANCE for b in ids} for a in ids}


def _lowest_bit(mask: int) -> int:
    return mask & -mask


def _parts(cpus: CpuSet, groups: Iterable[CpuSet]) -> list[int]:
    """The masks of these CPUs by group."""
    return [group.mask & cpus.mask for group in groups if not group.isdisjoint(cpus)]


def _domains(cpus: CpuSet, groups: Iterable[CpuSet]) -> tuple[int, ...]:
    """The masks of those parts that are large enough, by their lowest CPU; empty where there are no two."""
    masks = [mask for mask in _parts(cpus, groups) if mask.bit_count() >= LEAST_CPUS]
    return tuple(sorted(masks, key=_lowest_bit)) if len(masks) > 1 else ()
