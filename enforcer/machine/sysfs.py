"""The machine as sysfs shows it: NUMA nodes, SMT siblings, last-level caches, clusters, sockets.

Which CPUs are online, and each NUMA node's CPUs and memory, must be had. Any other file that is missing or makes no
sense costs only its own fact, and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.doubts import Doubts
from enforcer.machine.errors import BadFile, NotThere
from enforcer.machine.numa import numa_nodes
from enforcer.machine.tree import Tree
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.topology import Machine, NumaNode, uniform_distances

SYSFS = Path("/sys")
PROCFS = Path("/proc")

# Newer name first: kernels before 5.3 know only the second of each.
SIBLING_FILES = ("core_cpus_list", "thread_siblings_list")
PACKAGE_FILES = ("package_cpus_list", "core_siblings_list")
CLUSTER_FILES = ("cluster_cpus_list",)
"""Since 5.16: on Arm by the firmware's PPTT, on x86 the cores that share a level 2 cache."""

CACHES_OF_DATA = frozenset({"Unified", "Data"})


@dataclass(frozen=True, slots=True)
class MachineReading:
    """doubts: a sentence for each fact that could not be had, or was not as it should be."""

    machine: Machine
    doubts: tuple[str, ...]


def read_machine(sysfs_root: Path = SYSFS, name: str = "", proc_root: Path = PROCFS) -> Machine:
    """The machine that sysfs and procfs describe. MachineError when they describe none."""
    return read(sysfs_root, name, proc_root).machine


def read(
    sysfs_root: Path = SYSFS, name: str = "", proc_root: Path = PROCFS, tiers: NumaSet = NumaSet()
) -> MachineReading:
    """The machine under this sysfs root. proc_root: for the memory of a kernel without NUMA. tiers: NUMA nodes without
    CPUs whose memory the operator allows, whatever kind it is.

    BadFile, NotThere: the CPUs, or a NUMA node's CPUs or memory, can't be had.
    """
    cpu, node = Tree(sysfs_root / "devices/system/cpu"), Tree(sysfs_root / "devices/system/node")
    doubts = Doubts()
    online = online_cpus(cpu, doubts)
    isolated = _isolated(cpu, online, doubts)
    if node.root.is_dir():
        nodes = numa_nodes(node, online, isolated, tiers, doubts)
    else:
        nodes = (_the_only_node(online, isolated, Tree(proc_root)),)

    def by_topology(files: Iterable[str]) -> tuple[CpuSet, ...]:
        return _groups(online, lambda number: _listed(cpu.at(f"cpu{number}/topology"), files, number), doubts)

    cores = by_topology(SIBLING_FILES)
    try:
        machine = Machine(
            numa_nodes=nodes,
            cores=cores,
            caches=_groups(
                online, lambda number: last_level_cache(cpu.at(f"cpu{number}/cache"), number, doubts), doubts
            ),
            sockets=by_topology(PACKAGE_FILES) or doubts.fact(lambda: _by_package_id(cpu, online), ()),
            name=name,
            # Nearly every x86 machine has clusters of a single core, which say nothing.
            clusters=tuple(cluster for cluster in by_topology(CLUSTER_FILES) if cluster not in cores),
        )
    except PlacementError as error:
        raise NotThere(f"{sysfs_root}: not a machine: {error}") from error
    return MachineReading(machine, doubts.sentences())


def online_cpus(cpu: Tree, doubts: Doubts) -> CpuSet:
    """`online`; where it is missing, every cpuN folder whose own `online` is not 0 (CPU 0 often has none)."""

    def own(number: int) -> int | None:
        return doubts.fact(lambda: cpu.parsed(f"cpu{number}/online", formats.number), None)

    listed = cpu.parsed("online", CpuSet.parse)
    if listed is None:
        listed = CpuSet.of(number for number in cpu.numbered("cpu") if own(number) in (None, 1))
    if not listed:
        raise NotThere(f"{cpu.root}: no CPU is online")
    return listed


def _isolated(cpu: Tree, online: CpuSet, doubts: Doubts) -> CpuSet:
    """The CPUs that the kernel's command line keeps its scheduler (isolcpus) or its tick (nohz_full) off."""
    mask = 0
    for name in ("isolated", "nohz_full"):
        listed = doubts.fact(partial(cpu.parsed, name, formats.list_or_null), None)
        mask |= listed.mask if listed is not None else 0
    return CpuSet(mask) & online


def _the_only_node(online: CpuSet, isolated: CpuSet, proc: Tree) -> NumaNode:
    return NumaNode(
        id=0,
        cpus=online - isolated,
        memory=proc.needed("meminfo", formats.meminfo)["MemTotal"],
        distances=uniform_distances((0,))[0],
        isolated=isolated,
    )


def _groups(cpus: CpuSet, group_of: Callable[[int], CpuSet | None], doubts: Doubts) -> tuple[CpuSet, ...]:
    """Disjoint groups, by their lowest CPU. A CPU in an earlier group is not asked again: one read a group."""
    groups = []
    seen = CpuSet()
    for cpu in cpus:
        if cpu in seen:
            continue
        group = doubts.fact(partial(group_of, cpu), None)
        if group is None:
            continue
        # Some hypervisors give siblings contradictory lists; the first list counts, so that groups stay disjoint.
        mine = (group & cpus) - seen
        groups.append(mine)
        seen |= mine
    return tuple(groups)


def _listed(folder: Tree, files: Iterable[str], number: int) -> CpuSet | None:
    for name in files:
        group = folder.parsed(name, CpuSet.parse)
        if group is not None:
            return _with_itself(folder.root / name, group, number)
    return None


def _with_itself(path: Path, group: CpuSet, number: int) -> CpuSet:
    if number not in group:
        raise BadFile(path, str(group), f"leaves out CPU {number} itself")
    return group


def last_level_cache(folder: Tree, number: int, doubts: Doubts) -> CpuSet | None:
    """The CPUs that share this CPU's highest cache for data; None where the kernel lists no cache."""
    highest, shared = 0, None
    for index in folder.numbered("index"):
        higher = doubts.fact(partial(_higher, folder.at(f"index{index}"), highest, number), None)
        highest, shared = higher or (highest, shared)
    return shared


def _higher(cache: Tree, least: int, number: int) -> tuple[int, CpuSet] | None:
    """Level and CPUs of a cache for data above the given level."""
    level = cache.parsed("level", formats.count)
    if level is None or level <= least or cache.parsed("type", str.strip) not in CACHES_OF_DATA:
        return None
    shared = cache.parsed("shared_cpu_list", CpuSet.parse)
    return None if shared is None else (level, _with_itself(cache.root / "shared_cpu_list", shared, number))


def _by_package_id(cpu: Tree, online: CpuSet) -> tuple[CpuSet, ...]:
    packages: dict[int, int] = {}
    for number in online:
        package = cpu.parsed(f"cpu{number}/topology/physical_package_id", formats.number)
        # -1: the firmware does not say.
        if package is not None and package >= 0:
            packages[package] = packages.get(package, 0) | 1 << number
    return tuple(sorted((CpuSet(mask) for mask in packages.values()), key=lambda group: group.lowest))
