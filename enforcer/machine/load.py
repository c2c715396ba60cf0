"""How busy the machine is: the CPUs used on each NUMA node, and the kernel's pressure stall information."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from enforcer.machine import formats
from enforcer.machine.formats import CpuTime
from enforcer.machine.sysfs import PROCFS
from enforcer.machine.tree import Tree
from numakin.placement.model.topology import Machine


def cpu_times(proc_root: Path = PROCFS) -> Mapping[int, CpuTime]:
    """Each online CPU's time since boot: one end of a measurement."""
    return Tree(Path(proc_root)).needed("stat", formats.cpu_times)


def shares(before: Mapping[int, CpuTime], after: Mapping[int, CpuTime]) -> dict[int, float]:
    """The share of the time between two readings that each CPU was in use.

    A CPU that is not in both readings is left out; one whose clock ran backwards (it went offline between) was idle.
    """
    return {cpu: _share(time, after[cpu]) for cpu, time in before.items() if cpu in after}


def used_cpus(machine: Machine, busy: Mapping[int, float]) -> dict[int, float]:
    """CPUs in use on each NUMA node: 2.5 is two and a half CPUs' worth. busy: by CPU, 0 to 1."""
    return {node.id: sum(busy.get(cpu, 0.0) for cpu in node.cpus) for node in machine.numa_nodes}


def _share(before: CpuTime, after: CpuTime) -> float:
    busy, total = after.busy - before.busy, after.total - before.total
    # The kernel's idle counters may step back a little, so that busy exceeds total.
    return min(1.0, max(0.0, busy / total)) if total > 0 else 0.0


SCARCE = 10
"""A NUMA node on which less than this part of the memory is available is one that the kernel may be short of."""


def stalled(machine: Machine, share: float | None, available: Mapping[int, int]) -> dict[int, float]:
    """The share of time (0 to 1, over the last 10 s) that something waited for memory on each NUMA node with memory.

    share: of the whole machine, as the kernel has it; None where it keeps none, and then nothing waits. It counts for
    the NUMA nodes where memory is scarce: a container that waits for its own limit (two that did brought the machine to
    30 %, with 23 GiB free) slows no other.
    """
    return {
        node.id: share or 0.0 if available.get(node.id, 0) < node.ordinary_memory // SCARCE else 0.0
        for node in machine.numa_nodes
        if node.memory
    }


def memory_stall(proc_root: Path = PROCFS) -> float | None:
    """The share of time that some task of the machine waited for memory; None where the kernel keeps no pressure stall
    information (before 4.20, psi=0).
    """
    return Tree(Path(proc_root) / "pressure").parsed("memory", formats.stall_share)
