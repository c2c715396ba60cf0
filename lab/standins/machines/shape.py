"""A `Machine` from the few numbers that describe it: cores as Linux numbers them, caches, SLIT."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import LOCAL_DISTANCE, Machine, NumaNode

MIB = 1 << 20

Slit = Sequence[Sequence[int]]
Numbering = Callable[[int, int, int, int], int]
"""(core, thread, cores of the machine, threads per core) -> the CPU's id."""


def siblings_last(core: int, thread: int, cores: int, _threads: int) -> int:
    """x86 as firmware mostly lists it: all first threads, then all second ones, so that siblings are `cores` apart."""
    return core + thread * cores


def siblings_adjacent(core: int, thread: int, _cores: int, threads: int) -> int:
    """POWER, Arm and some x86 firmware: a core's threads follow one another."""
    return core * threads + thread


def two_sockets_in_turn(core: int, thread: int, cores: int, _threads: int) -> int:
    """Some vendors' x86 firmware lists one core of each socket in turn: even CPUs on socket 0, odd ones on socket 1."""
    socket, place = divmod(core, cores // 2)
    return place * 2 + socket + thread * cores


def numbered(cores_by_node: Sequence[int], threads: int, numbering: Numbering) -> list[list[CpuSet]]:
    """Each NUMA node's cores, as the sets of their CPUs."""
    total = sum(cores_by_node)
    first, numbered_cores = 0, []
    for cores in cores_by_node:
        numbered_cores.append(
            [
                CpuSet.of(numbering(core, thread, total, threads) for thread in range(threads))
                for core in range(first, first + cores)
            ]
        )
        first += cores
    return numbered_cores


def assembled(
    name: str,
    cores: Sequence[Sequence[CpuSet]],
    *,
    memory_mib: Sequence[int],
    slit: Slit,
    ids: Sequence[int] = (),
    memory_only_mib: Mapping[int, int] | None = None,
    nodes_per_socket: int = 1,
    cores_per_cache: int = 0,
    cores_per_cluster: int = 0,
    hugepages: Mapping[int, int] | None = None,
    withheld: Collection[int] = (),
) -> Machine:
    """The machine of these cores by NUMA node, with further NUMA nodes of memory alone (or of nothing) after them.

    cores_per_cache: consecutive cores under one last-level cache; 0 where Linux shows none. cores_per_cluster:
    likewise. slit: a row for each NUMA node, ascending.
    hugepages: page size to bytes, on every NUMA node with CPUs and memory. withheld: NUMA nodes that hold movable pages
    alone.
    """
    cpu_ids = list(ids) or list(range(len(cores)))
    memory = dict(zip(cpu_ids, memory_mib, strict=True)) | dict(memory_only_mib or {})
    cpus = {numa_node: union(group) for numa_node, group in zip(cpu_ids, cores, strict=True)}
    every = sorted(memory)
    nodes = tuple(
        NumaNode(
            id=numa_node,
            cpus=cpus.get(numa_node, CpuSet()),
            memory=memory[numa_node] * MIB,
            distances=dict(zip(every, row, strict=True)),
            hugepages=dict(hugepages or {}) if numa_node in cpus and memory[numa_node] else {},
            withheld=numa_node in withheld,
        )
        for numa_node, row in zip(every, slit, strict=True)
    )
    flat = [core for group in cores for core in group]
    return Machine(
        numa_nodes=nodes,
        cores=ascending(flat),
        caches=ascending(in_groups(flat, cores_per_cache)) if cores_per_cache else (),
        sockets=ascending(in_groups([union(group) for group in cores], nodes_per_socket)),
        name=name,
        clusters=ascending(in_groups(flat, cores_per_cluster)) if cores_per_cluster else (),
    )


def slit_of_sockets(sockets: int, nodes_per_socket: int, near: int, far: int) -> list[list[int]]:
    """10 at home, `near` within a socket, `far` between sockets."""
    count = sockets * nodes_per_socket
    return [
        [
            LOCAL_DISTANCE if a == b else near if a // nodes_per_socket == b // nodes_per_socket else far
            for b in range(count)
        ]
        for a in range(count)
    ]


def slit(text: str) -> list[list[int]]:
    """A matrix as text, a line for each row."""
    return [[int(distance) for distance in line.split()] for line in text.strip().splitlines()]


def in_groups(sets: Sequence[CpuSet], size: int) -> list[CpuSet]:
    return [union(sets[first : first + size]) for first in range(0, len(sets), size)]


def union(sets: Sequence[CpuSet]) -> CpuSet:
    mask = 0
    for cpus in sets:
        mask |= cpus.mask
    return CpuSet(mask)


def ascending(groups: Sequence[CpuSet]) -> tuple[CpuSet, ...]:
    return tuple(sorted(groups, key=lambda group: group.lowest))
