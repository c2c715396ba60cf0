"""The emulated NUMA machine's shapes (QEMU), as Linux shows them: small, odd and quick to decide on."""

from __future__ import annotations

from collections.abc import Sequence

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import numbered, siblings_adjacent, slit

SOURCE = "the topologies of the emulated machine under tests/e2e/lab"
DERIVED = "MemTotal: what the kernel leaves of each NUMA node's memory"


MACHINES: Sequence[Description] = (
    described(
        "qemu-4n",
        numbered([1] * 4, 2, siblings_adjacent),
        title="QEMU: 4 NUMA nodes of a 2-thread core with asymmetric distances, and one of memory alone",
        source=SOURCE,
        derived=DERIVED,
        memory_mib=[700] * 4,
        memory_only_mib={4: 768},
        slit=slit("10 16 22 28 40\n18 10 28 22 40\n22 28 10 16 42\n30 24 18 10 44\n40 40 42 44 10"),
        cores_per_cache=1,
    ),
    described(
        "qemu-holes",
        numbered([1] * 3, 2, siblings_adjacent),
        title="QEMU: 3 NUMA nodes of a 2-thread core, one of them without memory, and one of memory alone",
        source=SOURCE,
        derived=DERIVED,
        memory_mib=[950, 0, 1000],
        memory_only_mib={3: 512},
        slit=slit("10 16 21 32\n16 10 24 34\n21 24 10 36\n32 34 36 10"),
        cores_per_cache=1,
    ),
)
