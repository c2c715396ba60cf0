"""AMD machines: EPYC with 1, 2 and 4 NUMA nodes a socket (NPS), several last-level caches in each; Threadripper."""

from __future__ import annotations

from collections.abc import Mapping

from placement.model.cpuset import CpuSet
from standins.machines.description import Description
from standins.machines.shape import assembled, numbered, siblings_last, slit, slit_of_sockets

NEAR, FAR = 12, 32
"""EPYC's SLIT, the same in every public numactl -H since Rome: within a socket, and between two."""

CORES_PER_CCX = 8
"""Zen 3 and 4: eight cores share 32 MB of L3."""


def _epyc(title: str, source: str, derived: str, *, name: str, cores: int, nps: int, memory_mib: int) -> Description:
    return Description(
        title=f"{title}, NPS{nps}",
        source=source,
        derived=derived,
        machine=assembled(
            name,
            numbered([cores // nps] * 2 * nps, 2, siblings_last),
            memory_mib=[memory_mib // nps] * 2 * nps,
            slit=slit_of_sockets(2, nps, NEAR, FAR),
            nodes_per_socket=nps,
            cores_per_cache=CORES_PER_CCX,
        ),
    )


def _epyc_7763(nps: int) -> Description:
    return _epyc(
        "2 x AMD EPYC 7763 (Milan), 64 cores each, SMT 2",
        "numactl -H of ARCHER2 and Dardel nodes (128 cores, NPS4: NUMA node 7 is 112-127,240-255, SLIT 10/12/32); "
        "AMD's tuning guide 56745 (NPS1: 10/32)",
        "memory rounded" if nps == 4 else f"the cut into NPS{nps}, from the NPS4 dumps and AMD's guide; memory rounded",
        name=f"epyc-7763-nps{nps}",
        cores=64,
        nps=nps,
        memory_mib=257_800,
    )


def _epyc_9654(nps: int) -> Description:
    return _epyc(
        "2 x AMD EPYC 9654 (Genoa), 96 cores each, SMT 2",
        "numactl -H of such a machine in NPS2: NUMA node 3 is 144-191,336-383, SLIT 10/12/32; AMD's product page",
        "memory rounded" if nps == 2 else f"the cut into NPS{nps}, from the NPS2 dump and AMD's guide; memory rounded",
        name=f"epyc-9654-nps{nps}",
        cores=96,
        nps=nps,
        memory_mib=386_900,
    )


def _threadripper_2990wx() -> Description:
    name = "threadripper-2990wx"
    # Dies 0 and 2 have the memory channels; the kernel gives the middle ids to the others, but numbers CPUs die by die.
    dies = numbered([8, 8, 8, 8], 2, siblings_last)
    cores: list[list[CpuSet]] = [dies[0], dies[2], dies[1], dies[3]]
    return Description(
        title="AMD Ryzen Threadripper 2990WX, 32 cores, SMT 2: two of four NUMA nodes have no memory",
        source="syzygy1/Cfish#75: only NUMA nodes 0 and 2 of 4 have memory; AMD's product page: 8 MB L3 for 4 cores",
        derived="which CPUs are on which die; SLIT 10/16, the first EPYC's within a socket; 64 GiB",
        machine=assembled(
            name,
            cores,
            memory_mib=[32_000, 0, 32_200, 0],
            slit=slit("10 16 16 16\n16 10 16 16\n16 16 10 16\n16 16 16 10"),
            nodes_per_socket=4,
            cores_per_cache=4,
        ),
    )


_ALL = [*(_epyc_7763(nps) for nps in (1, 2, 4)), *(_epyc_9654(nps) for nps in (1, 2, 4)), _threadripper_2990wx()]

MACHINES: Mapping[str, Description] = {description.machine.name: description for description in _ALL}
