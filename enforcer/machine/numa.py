"""NUMA nodes as sysfs shows them: their CPUs and memory, their distances, and whose memory is for all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from enforcer.machine import formats
from enforcer.machine.doubts import Doubts
from enforcer.machine.errors import BadFile, NotThere
from enforcer.machine.tree import Tree
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import NumaNode, uniform_distances


def numa_node_ids(node: Tree) -> NumaSet:
    """The online NUMA nodes that have a folder: by `online`; where it is missing, every nodeN folder."""
    folders = NumaSet.of(node.numbered("node"))
    listed = node.parsed("online", NumaSet.parse)
    online = folders if listed is None else listed & folders
    if not online:
        raise NotThere(f"{node.root}: no NUMA node is online")
    return online


def numa_nodes(node: Tree, online: CpuSet, isolated: CpuSet, tiers: NumaSet, doubts: Doubts) -> tuple[NumaNode, ...]:
    """online, isolated: CPUs. tiers: NUMA nodes without CPUs whose memory the operator allows, whatever kind it is."""
    ids = numa_node_ids(node)
    if bare := (node.parsed("online", NumaSet.parse) or ids) - ids:
        doubts.add(f"{node.root}: NUMA nodes {bare} are online but have no folder")
    cpus = _cpus(node, ids, online, doubts)
    stray = online - CpuSet.of(cpu for own in cpus.values() for cpu in own)
    if stray:
        doubts.add(f"{node.root}: CPUs {stray} are online but on no NUMA node: no container is given them")
        cpus[ids.lowest] |= stray
    memory = {number: node.needed(f"node{number}/meminfo", formats.meminfo)["MemTotal"] for number in ids}
    lent = _normal_memory(node, ids, NumaSet.of(number for number in ids if cpus[number]), doubts) | tiers
    distances = _distances(node, ids, doubts)
    return tuple(
        NumaNode(
            id=number,
            cpus=cpus[number] - isolated - stray,
            memory=memory[number],
            distances=distances[number],
            hugepages=doubts.fact(partial(hugepages, node.at(f"node{number}"), "nr_hugepages"), {}),
            isolated=cpus[number] & (isolated | stray),
            withheld=bool(memory[number]) and number not in lent,
        )
        for number in ids
    )


def _cpus(node: Tree, ids: NumaSet, online: CpuSet, doubts: Doubts) -> dict[int, CpuSet]:
    """Each CPU on one NUMA node: the first that lists it.

    Containers' views of sysfs (lxcfs) may hide CPUs in `online` and still list them here.
    """
    cpus: dict[int, CpuSet] = {}
    seen = CpuSet()
    for number in ids:
        folder = node.at(f"node{number}")
        listed = folder.needed("cpulist", CpuSet.parse) & online
        if twice := listed & seen:
            doubts.add(f"{folder.root / 'cpulist'}: CPUs {twice} are on another NUMA node too: taken to be there alone")
        cpus[number] = listed - seen
        seen |= listed
    return cpus


def _normal_memory(node: Tree, ids: NumaSet, with_cpus: NumaSet, doubts: Doubts) -> NumaSet:
    """The NUMA nodes from which the kernel can take any page; of the others (GPUs' memory, most CXL) movable ones
    alone. Those with CPUs where the kernel does not say.
    """
    normal = doubts.fact(lambda: node.needed("has_normal_memory", NumaSet.parse), None)
    if normal is not None and not (normal and normal <= ids):
        doubts.add(f"{node.root / 'has_normal_memory'}: names NUMA nodes {normal or 'none'} where {ids} are online")
        normal = None
    return normal or with_cpus


def _distances(node: Tree, ids: NumaSet, doubts: Doubts) -> dict[int, Mapping[int, int]]:
    """A row that can't be taken is what the other rows say of its NUMA node, else what the kernel assumes."""
    assumed = uniform_distances(tuple(ids))
    rows = {number: doubts.fact(partial(_row, node, number, ids), None) for number in ids}

    def by_others(number: int) -> Mapping[int, int]:
        return assumed[number] | {other: row[number] for other, row in rows.items() if row and other != number}

    return {number: row or by_others(number) for number, row in rows.items()}


def _row(node: Tree, number: int, ids: NumaSet) -> Mapping[int, int] | None:
    """None without a file."""
    folder = node.at(f"node{number}")
    row = folder.parsed("distance", formats.distances)
    if row is None:
        return None
    # Kernels of RHEL 7 list a NUMA node that went offline, too.
    for covered in (ids, node.parsed("possible", NumaSet.parse) or NumaSet()):
        if len(row) == len(covered):
            return {other: far for other, far in zip(covered, row, strict=True) if other in ids}
    content = folder.text("distance") or ""
    raise BadFile(folder.root / "distance", content, f"{len(row)} distances where {len(ids)} NUMA nodes are online")


def hugepages(folder: Tree, file: str) -> Mapping[int, int]:
    """Page size to bytes by `nr_hugepages` or `free_hugepages` of a NUMA node; sizes without pages are left out."""
    pages_of = {}
    for pages in sorted((folder.root / "hugepages").glob("hugepages-*")):
        size = formats.hugepage_size(pages.name)
        how_many = Tree(pages).parsed(file, formats.count)
        if size and how_many:
            pages_of[size] = size * how_many
    return pages_of
