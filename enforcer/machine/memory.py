"""Memory that is free on each NUMA node now, as much as can be bound to without making the kernel swap or kill; and the
memory policy that a process runs under.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.errors import MachineError
from enforcer.machine.numa import hugepages, numa_node_ids
from enforcer.machine.sysfs import PROCFS, SYSFS
from enforcer.machine.tree import Tree

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")

# What the kernel gives back under pressure. Of the page cache only its inactive half, as the active one is a
# working set; of the slabs with a shrinker half, since the kernel's own estimate (MemAvailable) trusts them no further.
FREE = "MemFree"
INACTIVE_CACHE = "Inactive(file)"
RECLAIMABLE_SLABS = "SReclaimable"


def free_memory(sysfs_root: Path = SYSFS, proc_root: Path = PROCFS) -> dict[int, int]:
    """Bytes that can still be had on each online NUMA node: free or reclaimable, above its zones' `high` marks.

    At the `high` watermark kswapd is at rest; below it every allocation pays. Never negative.
    """
    proc = Tree(Path(proc_root))
    node = Tree(Path(sysfs_root) / "devices/system/node")
    marks = proc.parsed("zoneinfo", lambda text: formats.high_watermarks(text, PAGE_SIZE)) or {}
    if not node.root.is_dir():
        return {0: available(proc.needed("meminfo", formats.meminfo), sum(marks.values()))}
    return {
        number: available(node.needed(f"node{number}/meminfo", formats.meminfo), marks.get(number, 0))
        for number in numa_node_ids(node)
    }


def available(info: Mapping[str, int], watermark: int) -> int:
    """Bytes available by one NUMA node's meminfo, `watermark` bytes kept."""
    reclaimable = info.get(INACTIVE_CACHE, 0) + info.get(RECLAIMABLE_SLABS, 0) // 2
    return max(0, info.get(FREE, 0) + reclaimable - watermark)


def free_hugepages(sysfs_root: Path = SYSFS) -> dict[int, Mapping[int, int]]:
    """Each online NUMA node's free reserved pages: page size to bytes. Those that a process has mapped and not touched
    yet are free to the kernel.
    """
    node = Tree(Path(sysfs_root) / "devices/system/node")
    if not node.root.is_dir():
        return {}
    return {number: hugepages(node.at(f"node{number}"), "free_hugepages") for number in numa_node_ids(node)}


BALANCING, TIERING = 1, 2
"""Bits of `numa_balancing`: pages are moved to the CPUs that use them; hot pages are moved up from a lower tier of
memory (since Linux 5.18).
"""


def numa_balancing(proc_root: Path = PROCFS) -> int | None:
    """Which of its automatic NUMA balancing the kernel does, as bits; None where it was built without it."""
    return Tree(Path(proc_root) / "sys/kernel").parsed("numa_balancing", formats.count)


PREFERRED_MANY_SINCE = (5, 15)
"""The first Linux that knows MPOL_PREFERRED_MANY."""


def takes_preferred_many(sysfs_root: Path, proc_root: Path) -> bool:
    """Whether a container may be given the policy MPOL_PREFERRED_MANY: the kernel knows it, and was built for NUMA. An
    OCI runtime that is refused it fails the container's start. A kernel whose release can't be read is taken for older.
    """
    try:
        version = Tree(Path(proc_root) / "sys/kernel").parsed("osrelease", formats.kernel_version)
    except MachineError:
        return False
    numa = (Path(sysfs_root) / "devices/system/node").is_dir()
    return numa and version is not None and version >= PREFERRED_MANY_SINCE


FIRST_MAPPINGS = 4096
"""Bytes of numa_maps: the program's own mappings. The kernel walks the pages of each mapping that it writes down."""


def policy_of(proc_root: Path, pid: int) -> str | None:
    """The kernel's word for it, such as `default`, `bind:0-1` or `prefer:0`; None where it can't be read: the process
    has ended, we may not look, or the kernel knows no NUMA.

    Of the first mapping: the process's own policy is that of every mapping which has none of its own.
    """
    try:
        descriptor = os.open(Path(proc_root) / str(pid) / "numa_maps", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(descriptor, FIRST_MAPPINGS).split(b"\n", 1)[0].split()
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return fields[1].decode("ascii", "replace") if len(fields) > 1 else None
