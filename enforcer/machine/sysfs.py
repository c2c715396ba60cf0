"""The machine as sysfs tells it: NUMA nodes, SMT siblings, last-level caches, sockets.

What every kernel since 4.x writes is needed; what only some write is read where it is there, and left empty otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.errors import BadFile, NotThere
from enforcer.machine.tree import Tree
from placement.cpuset import CpuSet, NumaSet
from placement.errors import PlacementError
from placement.topology import Machine, NumaNode, uniform_distances

SYSFS = Path("/sys")
PROCFS = Path("/proc")

# Newer name first: kernels before 5.3 know only the second of each.
SIBLING_FILES = ("core_cpus_list", "thread_siblings_list")
PACKAGE_FILES = ("package_cpus_list", "core_siblings_list")

CACHES_OF_DATA = frozenset({"Unified", "Data"})


def read_machine(sysfs_root: Path = SYSFS, name: str = "", proc_root: Path = PROCFS) -> Machine:
    """The machine under this sysfs root. proc_root: for the memory of a kernel without NUMA.

    BadFile, NotThere: sysfs is not as a kernel writes it.
    """
    cpu, node = Tree(sysfs_root / "devices/system/cpu"), Tree(sysfs_root / "devices/system/node")
    online = online_cpus(cpu)
    numa_nodes = _numa_nodes(node, online) if node.root.is_dir() else (_the_only_node(online, Tree(proc_root)),)
    try:
        return Machine(
            numa_nodes=numa_nodes,
            cores=_groups(online, lambda one: _listed(cpu.at(f"cpu{one}/topology"), SIBLING_FILES, one)),
            caches=_groups(online, lambda one: last_level_cache(cpu.at(f"cpu{one}/cache"), one)),
            sockets=_sockets(cpu, online),
            name=name,
        )
    except PlacementError as error:
        raise NotThere(f"{sysfs_root}: not a machine: {error}") from error


def online_cpus(cpu: Tree) -> CpuSet:
    """`online`; where it is missing, every cpuN folder whose own `online` is not 0 (CPU 0 often has none)."""
    listed = cpu.parsed("online", CpuSet.parse)
    if listed is None:
        listed = CpuSet.of(
            one for one in cpu.numbered("cpu") if cpu.parsed(f"cpu{one}/online", formats.number) in (None, 1)
        )
    if not listed:
        raise NotThere(f"{cpu.root}: no CPU is online")
    return listed


def numa_node_ids(node: Tree) -> NumaSet:
    """The online NUMA nodes: `online`; where it is missing, every nodeN folder."""
    listed = node.parsed("online", NumaSet.parse)
    found = NumaSet.of(node.numbered("node"))
    if listed is None:
        listed = found
    if not listed <= found:
        raise NotThere(f"{node.root}: NUMA nodes {listed - found} are online but have no folder")
    if not listed:
        raise NotThere(f"{node.root}: no NUMA node is online")
    return listed


def _numa_nodes(node: Tree, online: CpuSet) -> tuple[NumaNode, ...]:
    ids = tuple(numa_node_ids(node))
    found = tuple(_numa_node(node.at(f"node{one}"), one, ids, online) for one in ids)
    placed = 0
    for one in found:
        placed |= one.cpus.mask
    if left := online - CpuSet(placed):
        raise NotThere(f"{node.root}: CPUs {left} are online but on no NUMA node")
    return found


def _numa_node(folder: Tree, one: int, ids: tuple[int, ...], online: CpuSet) -> NumaNode:
    row = folder.parsed("distance", formats.distances)
    if row is not None and len(row) != len(ids):
        content = folder.text("distance") or ""
        raise BadFile(folder.root / "distance", content, f"{len(row)} distances where {len(ids)} NUMA nodes are online")
    return NumaNode(
        id=one,
        # Containers' views of sysfs (lxcfs) may hide CPUs in `online` and still list them here.
        cpus=folder.needed("cpulist", CpuSet.parse) & online,
        memory=folder.needed("meminfo", formats.meminfo)["MemTotal"],
        distances=uniform_distances(ids)[one] if row is None else dict(zip(ids, row, strict=True)),
        hugepages=hugepages(folder, "nr_hugepages"),
    )


def hugepages(folder: Tree, file: str) -> Mapping[int, int]:
    """Page size to bytes by `nr_hugepages` or `free_hugepages` of a NUMA node; sizes without pages are left out."""
    found = {}
    for pages in sorted((folder.root / "hugepages").glob("hugepages-*")):
        size = formats.hugepage_size(pages.name)
        how_many = Tree(pages).parsed(file, formats.count)
        if size and how_many:
            found[size] = size * how_many
    return found


def _the_only_node(online: CpuSet, proc: Tree) -> NumaNode:
    return NumaNode(
        id=0,
        cpus=online,
        memory=proc.needed("meminfo", formats.meminfo)["MemTotal"],
        distances=uniform_distances((0,))[0],
    )


def _groups(cpus: CpuSet, group_of: Callable[[int], CpuSet | None]) -> tuple[CpuSet, ...]:
    """Disjoint groups, by their lowest CPU. A CPU in an earlier group is not asked again: one read a group."""
    found = []
    seen = CpuSet()
    for one in cpus:
        if one in seen:
            continue
        group = group_of(one)
        if group is None:
            continue
        # Some hypervisors tell siblings different stories; the first one told holds, so that groups stay disjoint.
        mine = (group & cpus) - seen
        found.append(mine)
        seen |= mine
    return tuple(found)


def _listed(folder: Tree, files: Iterable[str], one: int) -> CpuSet | None:
    for name in files:
        group = folder.parsed(name, CpuSet.parse)
        if group is not None:
            return _with_itself(folder.root / name, group, one)
    return None


def _with_itself(path: Path, group: CpuSet, one: int) -> CpuSet:
    if one not in group:
        raise BadFile(path, str(group), f"leaves out CPU {one} itself")
    return group


def last_level_cache(folder: Tree, one: int) -> CpuSet | None:
    """The CPUs that share this CPU's highest cache for data; None where the kernel tells of no cache."""
    highest, found = 0, None
    for index in folder.numbered("index"):
        cache = folder.at(f"index{index}")
        level = cache.parsed("level", formats.count)
        if level is None or level <= highest or cache.parsed("type", str.strip) not in CACHES_OF_DATA:
            continue
        shared = cache.parsed("shared_cpu_list", CpuSet.parse)
        if shared is not None:
            highest, found = level, _with_itself(cache.root / "shared_cpu_list", shared, one)
    return found


def _sockets(cpu: Tree, online: CpuSet) -> tuple[CpuSet, ...]:
    listed = _groups(online, lambda one: _listed(cpu.at(f"cpu{one}/topology"), PACKAGE_FILES, one))
    return listed or _by_package_id(cpu, online)


def _by_package_id(cpu: Tree, online: CpuSet) -> tuple[CpuSet, ...]:
    packages: dict[int, int] = {}
    for one in online:
        package = cpu.parsed(f"cpu{one}/topology/physical_package_id", formats.number)
        # -1: the firmware does not say.
        if package is not None and package >= 0:
            packages[package] = packages.get(package, 0) | 1 << one
    return tuple(sorted((CpuSet(mask) for mask in packages.values()), key=lambda group: group.lowest))
