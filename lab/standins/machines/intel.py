"""Intel machines: one NUMA node a socket, sub-NUMA clusters, SMT switched off, no NUMA at all."""

from __future__ import annotations

from collections.abc import Sequence

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import (
    numbered,
    siblings_adjacent,
    siblings_last,
    slit_of_sockets,
    two_sockets_in_turn,
)
from numakin.placement.model.cpuset import CpuSet

BY_DIE = ("0-3,6-8,12-14,19-20", "4-5,9-11,15-18,21-23", "24-27,31-33,37-39,43-44", "28-30,34-36,40-42,45-47")
"""CPUs by NUMA node of the Xeon 8260 with SNC2: not in order, since firmware lists cores by their place on the die."""

MACHINES: Sequence[Description] = (
    described(
        "xeon-8380",
        numbered([40, 40], 2, siblings_last),
        title="2 x Intel Xeon Platinum 8380 (Ice Lake), 40 cores each, SMT 2",
        source="Intel's product page: 40 cores, 80 threads, 60 MB L3 a socket",
        derived="memory 16 x 32 GiB; SLIT 10/20 and siblings 80 apart as on other 2-socket Ice Lake machines",
        memory_mib=[257_000, 258_000],
        slit=slit_of_sockets(2, 1, 10, 20),
        cores_per_cache=40,
        hugepages={1 << 30: 16 << 30},
    ),
    described(
        "xeon-8480-snc4",
        numbered([14] * 8, 2, siblings_last),
        title="2 x Intel Xeon Platinum 8480+ (Sapphire Rapids), 56 cores each, SMT 2, SNC4",
        source="numactl -H of a Leonardo DCGP node (8 NUMA nodes of 14 cores, SLIT 10/12/21, SMT off); lstopo "
        "in gramineproject/gramine#530 (the same with SMT on: siblings 112 apart, one L3 a socket)",
        memory_mib=[63_565, 64_508, 64_508, 64_508, 64_464, 64_508, 64_508, 64_505],
        slit=slit_of_sockets(2, 4, 12, 21),
        nodes_per_socket=4,
        cores_per_cache=56,
    ),
    described(
        "xeon-8260-snc2-smt-off",
        [[CpuSet.of((cpu,)) for cpu in CpuSet.parse(text)] for text in BY_DIE],
        title="2 x Intel Xeon Platinum 8260 (Cascade Lake), 24 cores each, SNC2, second threads offline",
        source="lscpu in iqiyi/dpvs#612: 96 CPUs, 48-95 offline, 4 NUMA nodes with these lists",
        derived="memory 4 x 48 GiB; SLIT 10/11/21 as on other SNC2 machines of that generation",
        memory_mib=[47_900, 48_350, 48_380, 48_350],
        slit=slit_of_sockets(2, 2, 11, 21),
        nodes_per_socket=2,
        cores_per_cache=24,
        offline=CpuSet.parse("48-95"),
        old_kernel=True,
    ),
    described(
        "xeon-e5-2680v4-in-turn",
        numbered([14, 14], 1, two_sockets_in_turn),
        title="2 x Intel Xeon E5-2680 v4 (Broadwell), 14 cores each, SMT off, CPUs numbered over the sockets in turn",
        source="lstopo of an Iris node, hpc-docs.uni.lu (35 MB L3 a socket, even CPUs on NUMA node 0)",
        derived="SLIT 10/21, the usual of that generation",
        memory_mib=[64_300, 64_500],
        slit=slit_of_sockets(2, 1, 10, 21),
        cores_per_cache=14,
        old_kernel=True,
    ),
    described(
        "superdome-flex-8s-snc2",
        numbered([14] * 16, 2, siblings_last),
        title="HPE Superdome Flex, 8 x Intel Xeon Platinum 8280 (Cascade Lake), 28 cores each, SMT 2, SNC2",
        source="HPE's quick specs: up to 8 sockets in two 4-socket chassis; Intel's product page: 28 cores, 38.5 MB L3",
        derived="all else: SLIT 11 within a socket, 21 within a chassis, 30 between chassis; memory 16 x 192 GiB",
        memory_mib=[193_000] * 16,
        slit=[
            [10 if a == b else 11 if a // 2 == b // 2 else 21 if a // 8 == b // 8 else 30 for b in range(16)]
            for a in range(16)
        ],
        nodes_per_socket=2,
        cores_per_cache=28,
    ),
    described(
        "laptop-no-numa",
        [[*numbered([4], 2, siblings_adjacent)[0], *(CpuSet.of((cpu,)) for cpu in range(8, 16))]],
        title="A laptop: Intel Core i7-1260P, 4 cores with SMT 2 and 8 without, a kernel built without NUMA",
        source="Intel's product page: 4 performance and 8 efficient cores, 16 threads, 18 MB L3 for all",
        derived="16 GiB; a kernel without CONFIG_NUMA",
        memory_mib=[15_700],
        slit=[[10]],
        cores_per_cache=12,
        numa=False,
    ),
)
