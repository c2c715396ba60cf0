"""AMD machines: EPYC with 1, 2 and 4 NUMA nodes a socket (NPS), several last-level caches in each; Threadripper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import numbered, siblings_last, slit, slit_of_sockets
from numakin.placement.model.cpuset import CpuSet

NEAR, FAR = 12, 32
"""EPYC's SLIT, the same in every public numactl -H since Rome: within a socket, and between two."""

CORES_PER_CCX = 8
"""Zen 3 to 5: eight cores share 32 MB of L3."""

CORES_PER_CCX_BEFORE = 4
"""Zen 1 and 2: four cores share 8 and 16 MB."""

CORES_PER_DENSE_CCX = 16
"""Zen 5c: sixteen cores share 32 MB."""


def _epyc(
    model: str,
    generation: str,
    source: str,
    derived: str,
    *,
    cores: int,
    nps: int,
    memory_mib: int,
    cores_per_ccx: int = CORES_PER_CCX,
    near: int = NEAR,
    name: str = "",
) -> Description:
    """Of two sockets. name: where it is not by its NPS."""
    return described(
        name or f"epyc-{model}-nps{nps}",
        numbered([cores // nps] * 2 * nps, 2, siblings_last),
        title=f"2 x AMD EPYC {model} ({generation}), {cores} cores each, SMT 2, NPS{nps}",
        source=source,
        derived=derived,
        memory_mib=[memory_mib // nps] * 2 * nps,
        slit=slit_of_sockets(2, nps, near, FAR),
        nodes_per_socket=nps,
        cores_per_cache=cores_per_ccx,
    )


def _cut(model: str, generation: str, source: str, *ways: int, dumped: int, **sizes: Any) -> Iterator[Description]:
    """One for each NPS. dumped: that of the public dumps."""
    for nps in ways:
        cut = "" if nps == dumped else f"the cut into NPS{nps}, from the NPS{dumped} dumps and AMD's guide; "
        yield _epyc(model, generation, source, f"{cut}memory rounded", nps=nps, **sizes)


def _turin(model: str, cores: int, cores_per_ccx: int, l3_mb: int) -> Description:
    return _epyc(
        model,
        "Turin",
        f"AMD's product page: {cores} cores, {l3_mb} MB L3, 32 MB for {cores_per_ccx} cores",
        "how CPUs are numbered and the SLIT, as on Genoa; memory 24 x 64 GiB",
        cores=cores,
        nps=1,
        memory_mib=773_800,
        cores_per_ccx=cores_per_ccx,
    )


def _threadripper_2990wx() -> Description:
    name = "threadripper-2990wx"
    # Dies 0 and 2 have the memory channels; the kernel gives the middle ids to the others, but numbers CPUs die by die.
    dies = numbered([8, 8, 8, 8], 2, siblings_last)
    cores: list[list[CpuSet]] = [dies[0], dies[2], dies[1], dies[3]]
    return described(
        name,
        cores,
        title="AMD Ryzen Threadripper 2990WX, 32 cores, SMT 2: two of four NUMA nodes have no memory",
        source="syzygy1/Cfish#75: only NUMA nodes 0 and 2 of 4 have memory; AMD's product page: 8 MB L3 for 4 cores",
        derived="which CPUs are on which die; SLIT 10/16, the first EPYC's within a socket; 64 GiB",
        memory_mib=[32_000, 0, 32_200, 0],
        slit=slit("10 16 16 16\n16 10 16 16\n16 16 10 16\n16 16 16 10"),
        nodes_per_socket=4,
        cores_per_cache=4,
    )


MACHINES: Sequence[Description] = (
    # The first generation has no choice of NPS by itself: a NUMA node for each of the four dies.
    _epyc(
        "7601",
        "Naples",
        "AMD's product page: 64 MB L3; the four dies of two complexes of four cores each that AMD shows as NUMA nodes "
        "by default; numactl -H of such machines: SLIT 10/16/32",
        "memory rounded",
        cores=32, nps=4, memory_mib=128_900, cores_per_ccx=CORES_PER_CCX_BEFORE, near=16, name="epyc-7601",
    ),
    *_cut(
        "7742",
        "Rome",
        "numactl -H of a DGX A100 (NPS4: NUMA node 0 is 0-15,128-143, SLIT 10/12/32); AMD's product page: 256 MB L3, "
        "16 MB for four cores",
        1, 4, dumped=4, cores=64, memory_mib=515_900, cores_per_ccx=CORES_PER_CCX_BEFORE,
    ),
    *_cut(
        "7763",
        "Milan",
        "numactl -H of ARCHER2 and Dardel nodes (128 cores, NPS4: NUMA node 7 is 112-127,240-255, SLIT 10/12/32); "
        "AMD's tuning guide 56745 (NPS1: 10/32)",
        1, 2, 4, dumped=4, cores=64, memory_mib=257_800,
    ),
    *_cut(
        "9654",
        "Genoa",
        "numactl -H of such a machine in NPS2: NUMA node 3 is 144-191,336-383, SLIT 10/12/32; AMD's product page",
        1, 2, 4, dumped=2, cores=96, memory_mib=386_900,
    ),
    _turin("9755", 128, CORES_PER_CCX, 512),
    _turin("9965", 192, CORES_PER_DENSE_CCX, 384),
    _threadripper_2990wx(),
)  # fmt: skip
