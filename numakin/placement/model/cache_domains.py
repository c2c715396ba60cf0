"""The parts of a NUMA node whose CPUs are nearer to each other than to the others: those under one last-level cache (an
EPYC in NPS1 has eight to twelve in a NUMA node), or, where all share one, the clusters of cores that Arm's firmware
describes (a Kunpeng 920 has four cores in each).
"""

from __future__ import annotations

from collections.abc import Iterable

from numakin.placement.model.cpuset import CpuSet

LEAST_CPUS = 4
"""A domain has at least so many: an EPYC with two cores a cache still does. The pairs of an Altra, which share a snoop
filter and no cache, are none: so narrow a cpuset costs more than a near cache gains.
"""


def parts(cpus: CpuSet, groups: Iterable[CpuSet]) -> list[int]:
    """The masks of these CPUs by group."""
    return [group.mask & cpus.mask for group in groups if not group.isdisjoint(cpus)]


def domains(cpus: CpuSet, groups: Iterable[CpuSet]) -> tuple[int, ...]:
    """The masks of those parts that are large enough, by their lowest CPU; empty where there are no two."""
    masks = [mask for mask in parts(cpus, groups) if mask.bit_count() >= LEAST_CPUS]
    return tuple(sorted(masks, key=lambda mask: mask & -mask)) if len(masks) > 1 else ()
