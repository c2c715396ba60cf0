"""A known machine, written down: what Linux shows of it, where that is public, and what of it is derived."""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine


@dataclass(frozen=True)
class Description:
    """machine: what is online; offline: the CPUs that are present but offline. source: where its facts are public.

    derived: what no public dump shows, and what it was derived from. numa: whether the kernel was built with NUMA.
    cache_level: that of `machine.caches`. old_kernel: before 5.3, with the older names of the topology files.
    """

    title: str
    machine: Machine
    source: str
    derived: str = ""
    offline: CpuSet = CpuSet()
    numa: bool = True
    cache_level: int = 3
    old_kernel: bool = False

    @property
    def present(self) -> CpuSet:
        return self.machine.all_cpus | self.offline
