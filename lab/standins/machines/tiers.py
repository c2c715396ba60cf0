"""Machines with NUMA nodes of memory alone: on-package memory, CXL, GPUs; and POWER, which numbers with gaps."""

from __future__ import annotations

from collections.abc import Sequence

from lab.standins.machines.description import Description, described
from lab.standins.machines.shape import numbered, siblings_adjacent, siblings_last, slit
from numakin.placement.model.cpuset import CpuSet


def _far_in_gb200(a: int, b: int) -> int:
    if a == b:
        return 10
    if max(a, b) < 2:
        return 40
    if min(a, b) < 2:
        # GPUs 0 and 1 hang at the first CPU, 2 and 3 at the second.
        return 80 if _gpu(max(a, b)) // 2 == min(a, b) else 120
    return 11 if _gpu(a) == _gpu(b) else 40


def _gpu(node: int) -> int:
    return (node - 2) // 8


AC922 = [0, 8, *range(250, 256)]
"""The NUMA nodes of one with six GPUs."""

MACHINES: Sequence[Description] = (
    described(
        "knl-7250-snc4-flat",
        numbered([18, 18, 16, 16], 4, siblings_last),
        title="Intel Xeon Phi 7250 (Knights Landing), 68 cores, SMT 4, SNC-4, flat: MCDRAM as NUMA nodes 4-7",
        source="open-mpi/hwloc#233 (8 NUMA nodes, 34 L2, 68 cores, 272 CPUs); hwloc's source (the SLIT: MCDRAM far); "
        "NERSC's pages on Cori (34 tiles of two cores over four quadrants, L2 shared by a tile, no L3)",
        derived="quadrants of 18, 18, 16 and 16 cores; siblings 68 apart; memory 4 x 24 GiB and 4 x 4 GiB",
        memory_mib=[24_000, 24_230, 24_230, 24_230],
        memory_only_mib=dict.fromkeys(range(4, 8), 4_096),
        slit=slit(
            """
            10 21 21 21 31 41 41 41
            21 10 21 21 41 31 41 41
            21 21 10 21 41 41 31 41
            21 21 21 10 41 41 41 31
            31 41 41 41 10 41 41 41
            41 31 41 41 41 10 41 41
            41 41 31 41 41 41 10 41
            41 41 41 31 41 41 41 10
            """
        ),
        nodes_per_socket=4,
        cores_per_cache=2,
        cache_level=2,
        old_kernel=True,
    ),
    described(
        "xeon-max-9470-flat",
        numbered([52, 52], 2, siblings_last),
        title="2 x Intel Xeon Max 9470C (Sapphire Rapids with HBM), 52 cores each, SMT 2, HBM as NUMA nodes 2-3",
        source="numactl -H of an Aurora node, in argonne-lcf/user-guides#756",
        derived="one L3 a socket; memory of NUMA nodes 0-1, as 512 GB each",
        memory_mib=[515_000, 515_000],
        memory_only_mib={2: 65_536, 3: 65_536},
        slit=slit("10 21 13 23\n21 10 23 13\n13 23 10 23\n23 13 23 10"),
        cores_per_cache=52,
    ),
    described(
        "xeon-cxl",
        numbered([52, 52], 2, siblings_last),
        title="2 x Intel Xeon (Sapphire Rapids), 52 cores each, SMT 2, CXL memory on each: NUMA nodes 2-3",
        source="numactl -H in S. Scargall, How To Map a CXL Endpoint to a CPU Socket in Linux (2022)",
        derived="one L3 a socket",
        memory_mib=[64_167, 64_472],
        memory_only_mib={2: 65_536, 3: 131_072},
        slit=slit("10 21 14 24\n21 10 24 14\n14 24 10 26\n24 14 26 10"),
        cores_per_cache=52,
    ),
    described(
        "gb200",
        numbered([72, 72], 1, siblings_adjacent),
        title="NVIDIA GB200: 2 Grace CPUs of 72 cores, 4 GPUs: 34 NUMA nodes, 28 of them reserved and empty",
        source="numactl -H in NVIDIA/TensorRT-LLM tech blog 8: NUMA nodes 2, 10, 18, 26 GPUs, SLIT 10/11/40/80/120",
        derived="the rows of the SLIT that the dump leaves out; one L3 a socket",
        memory_mib=[489_935, 489_795],
        memory_only_mib={node: 188_416 if node % 8 == 2 else 0 for node in range(2, 34)},
        slit=[[_far_in_gb200(a, b) for b in range(34)] for a in range(34)],
        cores_per_cache=72,
        withheld=[2, 10, 18, 26],
    ),
    described(
        "power9-ac922",
        numbered([16, 16], 4, siblings_adjacent),
        title="IBM Power AC922, 2 x POWER9 of 16 cores, SMT 4, 4 GPUs: NUMA nodes 0, 8 and 252-255",
        source="numactl -H of such a machine in public (CPUs 0-63 and 64-127; GPUs of 32,256 MB; SLIT 10/40/80)",
        derived="L3: IBM's manual, 10 MB for a pair of cores",
        ids=[0, 8],
        memory_mib=[257_716, 261_728],
        memory_only_mib=dict.fromkeys(range(252, 256), 32_256),
        slit=slit(
            """
            10 40 80 80 80 80
            40 10 80 80 80 80
            80 80 10 80 80 80
            80 80 80 10 80 80
            80 80 80 80 10 80
            80 80 80 80 80 10
            """
        ),
        cores_per_cache=2,
        withheld=range(252, 256),
    ),
    described(
        "power9-six-gpus",
        numbered([22, 22], 4, siblings_adjacent),
        title="IBM Power AC922, 2 x POWER9 of 22 cores, SMT 4, 6 GPUs: NUMA nodes 0, 8 and 250-255",
        source="hwloc's recorded sysfs of such a machine (its test nvidiagpunumanodes): CPUs 0-87 and 88-175, GPUs of "
        "15,360 MB, SLIT 10/40/80, has_normal_memory 0,8, has_memory 0,8,250-255",
        derived="L3: IBM's manual, 10 MB for a pair of cores",
        ids=[0, 8],
        memory_mib=[126_796, 130_812],
        memory_only_mib=dict.fromkeys(range(250, 256), 15_360),
        slit=[[10 if a == b else 40 if max(a, b) <= 8 else 80 for b in AC922] for a in AC922],
        cores_per_cache=2,
        withheld=range(250, 256),
    ),
    described(
        "power8-smt-off",
        [[CpuSet.of((cpu,)) for cpu in range(first, first + 40, 8)] for first in (0, 40)],
        title="IBM POWER8, 10 cores, SMT 8 switched off, one NUMA node without memory",
        source="numactl -H in autotest/tp-qemu#1794: 0 8 16 24 32 with 32 GiB, 40 48 56 64 72 with none, SLIT 10/20",
        derived="8 MB L3 for each core, IBM's manual",
        memory_mib=[32_768, 0],
        slit=slit("10 20\n20 10"),
        cores_per_cache=1,
        offline=CpuSet.of(cpu for cpu in range(80) if cpu % 8),
        old_kernel=True,
    ),
)
