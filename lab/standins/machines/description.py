"""A known machine, written down: what Linux shows of it, where that is public, and what of it is derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from lab.standins.machines.shape import assembled
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


def described(name: str, cores: Sequence[Sequence[CpuSet]], **facts: Any) -> Description:
    """facts: what `assembled` takes of the machine, and the Description's other fields."""
    own = {each.name: facts.pop(each.name) for each in fields(Description) if each.name in facts}
    return Description(machine=assembled(name, cores, **facts), **own)
