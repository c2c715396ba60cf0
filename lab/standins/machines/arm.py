"""Arm machines: a NUMA node for each die, no SMT, CPUs numbered in order."""

from __future__ import annotations

from collections.abc import Sequence

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import numbered, siblings_adjacent, slit, slit_of_sockets

CORES_PER_CLUSTER = 4
"""Kunpeng 920: 6 or 8 clusters a die, each with its part of the L3's tags."""


def _kunpeng_slit(sockets: int) -> list[list[int]]:
    """The 2-socket dump's rule for more: 12 to the other die; 20 to another socket, and 2 more for each inner hop."""
    count = 2 * sockets
    return [
        [10 if a == b else 12 if a // 2 == b // 2 else 20 + 2 * (a % 2 + b % 2) for b in range(count)]
        for a in range(count)
    ]


PHYTIUM_SOCKET = slit(
    """
    10 20 40 30 20 30 50 40
    20 10 30 40 50 20 40 50
    40 30 10 20 40 50 20 30
    30 40 20 10 30 20 40 50
    20 50 40 30 10 50 30 20
    30 20 50 20 50 10 50 40
    50 40 20 40 30 50 10 30
    40 50 30 50 20 40 30 10
    """
)
BETWEEN_PHYTIUM_SOCKETS = [100] * 8

MACHINES: Sequence[Description] = (
    described(
        "kunpeng-920-2s",
        numbered([24] * 4, 1, siblings_adjacent),
        title="2 x HiSilicon Kunpeng 920-4826, 48 cores each",
        source="numactl -H of such machines on the linux-kernel list (2020-21) and in public benchmarks: "
        "4 NUMA nodes of 24 cores, SLIT 10 12 20 22 / 12 10 22 24 / ...; one L3 a die; clusters of 4 cores "
        "(the kernel's commit that made clusters a level of its scheduler)",
        memory_mib=[192_832, 193_533, 193_533, 193_532],
        slit=slit("10 12 20 22\n12 10 22 24\n20 22 10 12\n22 24 12 10"),
        nodes_per_socket=2,
        cores_per_cache=24,
        cores_per_cluster=CORES_PER_CLUSTER,
    ),
    described(
        "kunpeng-920-4s",
        numbered([32] * 8, 1, siblings_adjacent),
        title="4 x HiSilicon Kunpeng 920-6426, 64 cores each",
        source="HiSilicon's product page: 64 cores, up to 4 sockets, each linked to the three others",
        derived="the SLIT: the 2-socket machine's rule for every pair of sockets, all linked; clusters as there; "
        "memory 8 x 128 GiB",
        memory_mib=[127_668] * 8,
        slit=_kunpeng_slit(4),
        nodes_per_socket=2,
        cores_per_cache=32,
        cores_per_cluster=CORES_PER_CLUSTER,
    ),
    described(
        "ampere-altra-quadrant",
        numbered([20] * 4, 1, siblings_adjacent),
        title="Ampere Altra Q80-30, 80 cores, in quadrant mode",
        source="Ampere's product page; lscpu in core-to-core-latency#49 (80 CPUs) and vllm-project/vllm#39191 "
        "(Linux shows no cache shared by several CPUs)",
        derived="the SLIT: 11 between quadrants, as on other machines that split a die; memory 4 x 64 GiB",
        memory_mib=[64_000] * 4,
        slit=slit_of_sockets(1, 4, 11, 20),
        nodes_per_socket=4,
        cores_per_cache=1,
        cache_level=2,
    ),
    described(
        "phytium-s2500-2s",
        numbered([8] * 16, 1, siblings_adjacent),
        title="2 x Phytium S2500, 64 cores each: 16 NUMA nodes, 100 between the sockets",
        source="lscpu and numactl -H in public benchmarks of it (16 NUMA nodes of 8 cores; rows 0-12 of the SLIT)",
        derived="rows 13-15 of the SLIT; memory 16 x 32 GiB; one L3 a socket, by its size (64 MiB)",
        memory_mib=[32_500] * 16,
        slit=[
            *(row + BETWEEN_PHYTIUM_SOCKETS for row in PHYTIUM_SOCKET),
            *(BETWEEN_PHYTIUM_SOCKETS + row for row in PHYTIUM_SOCKET),
        ],
        nodes_per_socket=8,
        cores_per_cache=64,
    ),
)
