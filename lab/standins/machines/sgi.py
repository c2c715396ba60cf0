"""Machines of many NUMA nodes: SGI's Altix, as hwloc's recorded sysfs trees of them show."""

from __future__ import annotations

from collections.abc import Sequence

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import numbered, siblings_adjacent


def _far_of_17(a: int, b: int) -> int:
    return 10 if a == b else 14 if max(a, b) == 16 else 17 if a // 4 == b // 4 else 20


def _far_of_64(a: int, b: int) -> int:
    """By bricks of four NUMA nodes, at the corners of a square; four such squares."""
    if a == b:
        return 10
    apart = a // 4 ^ b // 4
    if a // 16 == b // 16:
        return 22 + 4 * apart.bit_count()
    return 34 if apart & 1 else 30


MACHINES: Sequence[Description] = (
    described(
        "altix-17n",
        numbered([8] * 16, 1, siblings_adjacent),
        title="SGI Altix of 128 Itanium 2 cores: 16 NUMA nodes of 8 CPUs and one of memory alone",
        source="hwloc's recorded test 128ia64-17n4s2c",
        derived="the kernel of the recording shows neither caches nor which memory is normal",
        memory_mib=[98_240] * 16,
        memory_only_mib={16: 996},
        slit=[[_far_of_17(a, b) for b in range(17)] for a in range(17)],
        old_kernel=True,
    ),
    described(
        "altix-64n",
        numbered([4] * 64, 1, siblings_adjacent),
        title="SGI Altix of 256 Itanium 2 cores: 64 NUMA nodes of 4 CPUs",
        source="hwloc's recorded test 256ia64-64n2s2c",
        derived="the kernel of the recording shows neither caches nor which memory is normal",
        memory_mib=[7_875] * 64,
        slit=[[_far_of_64(a, b) for b in range(64)] for a in range(64)],
        old_kernel=True,
    ),
)
