"""NUMA nodes as sysfs tells them: their CPUs and memory, their distances, and whose memory is for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from enforcer.machine import formats
from enforcer.machine.doubts import Doubts
from enforcer.machine.errors import BadFile, NotThere
from enforcer.machine.tree import Tree
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import NumaNode, uniform_distances


def numa_node_ids(node: Tree) -> NumaSet:
    """The online NUMA nodes that have a folder: by `online`; where it is missing, every nodeN folder."""
    found = NumaSet.of(node.numbered("node"))
    listed = node.parsed("online", NumaSet.parse)
    online = found if listed is None else listed & found
    if not online:
        raise NotThere(f"{node.root}: no NUMA node is online")
    return online


def numa_nodes(node: Tree, online: CpuSet, isolated: CpuSet, tiers: NumaSet, doubts: Doubts) -> tuple[NumaNode, ...]:
    """online, isolated: CPUs. tiers: NUMA nodes without CPUs whose memory the operator allows, whatever kind it is."""
    ids = numa_node_ids(node)
    if bare := (node.parsed("online", NumaSet.parse) or ids) - ids:
        doubts.add(f"{node.root}: NUMA nodes {bare} are online but have no folder")
    cpus = _cpus(node, ids, online, doubts)
    stray = online - _union(cpus)
    if stray:
        doubts.add(f"{node.root}: CPUs {stray} are online but on no NUMA node: no container is given them")
        cpus[ids.lowest] |= stray
    memory = {one: node.needed(f"node{one}/meminfo", formats.meminfo)["MemTotal"] for one in ids}
    lent = _normal_memory(node, ids, NumaSet.of(one for one in ids if cpus[one]), doubts) | tiers
    distances = _distances(node, ids, doubts)
    return tuple(
        NumaNode(
            id=one,
            cpus=cpus[one] - isolated - stray,
            memory=memory[one],
            distances=distances[one],
            hugepages=doubts.fact(partial(hugepages, node.at(f"node{one}"), "nr_hugepages"), {}),
            isolated=cpus[one] & (isolated | stray),
            withheld=bool(memory[one]) and one not in lent,
        )
        for one in ids
    )


def _cpus(node: Tree, ids: NumaSet, online: CpuSet, doubts: Doubts) -> dict[int, CpuSet]:
    """Each CPU on one NUMA node: the first that lists it.

    Containers' views of sysfs (lxcfs) may hide CPUs in `online` and still list them here.
    """
    found: dict[int, CpuSet] = {}
    seen = CpuSet()
    for one in ids:
        folder = node.at(f"node{one}")
        listed = folder.needed("cpulist", CpuSet.parse) & online
        if twice := listed & seen:
            doubts.add(f"{folder.root / 'cpulist'}: CPUs {twice} are on another NUMA node too: taken to be there alone")
        found[one] = listed - seen
        seen |= listed
    return found


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
    rows = {one: doubts.fact(partial(_row, node, one, ids), None) for one in ids}

    def by_others(one: int) -> Mapping[int, int]:
        return assumed[one] | {other: row[one] for other, row in rows.items() if row and other != one}

    return {one: row or by_others(one) for one, row in rows.items()}


def _row(node: Tree, one: int, ids: NumaSet) -> Mapping[int, int] | None:
    """None without a file."""
    folder = node.at(f"node{one}")
    row = folder.parsed("distance", formats.distances)
    if row is None:
        return None
    # Kernels of RHEL 7 tell of a NUMA node that went offline, too.
    for told_of in (ids, node.parsed("possible", NumaSet.parse) or NumaSet()):
        if len(row) == len(told_of):
            return {other: far for other, far in zip(told_of, row, strict=True) if other in ids}
    content = folder.text("distance") or ""
    raise BadFile(folder.root / "distance", content, f"{len(row)} distances where {len(ids)} NUMA nodes are online")


def hugepages(folder: Tree, file: str) -> Mapping[int, int]:
    """Page size to bytes by `nr_hugepages` or `free_hugepages` of a NUMA node; sizes without pages are left out."""
    found = {}
    for pages in sorted((folder.root / "hugepages").glob("hugepages-*")):
        size = formats.hugepage_size(pages.name)
        how_many = Tree(pages).parsed(file, formats.count)
        if size and how_many:
            found[size] = size * how_many
    return found


def _union(cpus: Mapping[int, CpuSet]) -> CpuSet:
    return CpuSet.of(cpu for each in cpus.values() for cpu in each)
