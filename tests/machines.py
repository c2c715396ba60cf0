"""Named machine shapes as values, reused by every test.

Ids, sizes and distances are those that such machines show in sysfs; memory is in round GiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode, uniform_distances

GIB = 1 << 30
MIB = 1 << 20


def machine(
    name: str,
    cpus: Sequence[str],
    memory_gib: Sequence[int],
    distances: Sequence[Sequence[int]] | None = None,
    *,
    ids: Sequence[int] | None = None,
    threads: Sequence[str] = (),
    caches: Sequence[str] = (),
    sockets: Sequence[str] = (),
    hugepages: Sequence[dict[int, int]] | None = None,
) -> Machine:
    """A machine from lists in the order of its NUMA nodes. threads: the siblings of each core."""
    numbers = tuple(ids or range(len(cpus)))
    table = (
        uniform_distances(numbers)
        if distances is None
        else {number: dict(zip(numbers, row, strict=True)) for number, row in zip(numbers, distances, strict=True)}
    )
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                number,
                CpuSet.parse(cpus[at]),
                memory_gib[at] * GIB,
                table[number],
                hugepages[at] if hugepages else {},
            )
            for at, number in enumerate(numbers)
        ),
        cores=tuple(CpuSet.parse(core) for core in threads),
        caches=tuple(CpuSet.parse(cache) for cache in caches),
        sockets=tuple(CpuSet.parse(socket) for socket in sockets),
        name=name,
    )


def _siblings(cores: int, apart: int) -> list[str]:
    return [f"{core},{core + apart}" for core in range(cores)]


NO_NUMA = machine("a laptop: no NUMA", ["0-3"], [16])

SMALL = machine("two NUMA nodes of 4 CPUs", ["0-3", "4-7"], [8, 8])

XEON = machine(
    "2-socket Xeon Gold 6130, SMT",
    ["0-15,32-47", "16-31,48-63"],
    [96, 96],
    [[10, 21], [21, 10]],
    threads=_siblings(32, 32),
    caches=["0-15,32-47", "16-31,48-63"],
    sockets=["0-15,32-47", "16-31,48-63"],
)

XEON_SNC2 = machine(
    "2-socket Xeon Gold 6248, sub-NUMA clustering",
    ["0-9,40-49", "10-19,50-59", "20-29,60-69", "30-39,70-79"],
    [48, 48, 48, 48],
    [[10, 11, 21, 21], [11, 10, 21, 21], [21, 21, 10, 11], [21, 21, 11, 10]],
    threads=_siblings(40, 40),
    caches=["0-19,40-59", "20-39,60-79"],
    sockets=["0-19,40-59", "20-39,60-79"],
)

EPYC_NPS1 = machine(
    "1-socket EPYC 7502P, NPS1: eight CCX in one NUMA node",
    ["0-63"],
    [256],
    threads=_siblings(32, 32),
    caches=[f"{4 * ccx}-{4 * ccx + 3},{32 + 4 * ccx}-{35 + 4 * ccx}" for ccx in range(8)],
    sockets=["0-63"],
)

EPYC_NPS4 = machine(
    "2-socket EPYC 7763, NPS4: two CCX in each NUMA node",
    [f"{16 * entry}-{16 * entry + 15},{128 + 16 * entry}-{143 + 16 * entry}" for entry in range(8)],
    [64] * 8,
    [[10 if a == b else 12 if a // 4 == b // 4 else 32 for b in range(8)] for a in range(8)],
    threads=_siblings(128, 128),
    caches=[f"{8 * ccx}-{8 * ccx + 7},{128 + 8 * ccx}-{135 + 8 * ccx}" for ccx in range(16)],
    sockets=["0-63,128-191", "64-127,192-255"],
)

KUNPENG_920 = machine(
    "2-socket Kunpeng 920: four NUMA nodes of 32 CPUs, no SMT",
    ["0-31", "32-63", "64-95", "96-127"],
    [128] * 4,
    [[10, 12, 20, 22], [12, 10, 22, 24], [20, 22, 10, 12], [22, 24, 12, 10]],
    caches=["0-31", "32-63", "64-95", "96-127"],
    sockets=["0-63", "64-127"],
)

ALTRA = machine("1-socket Ampere Altra Q80-30", ["0-79"], [256], sockets=["0-79"])

KNL_FLAT = machine(
    "Xeon Phi 7250, SNC-4 flat: four NUMA nodes with CPUs, four of HBM only",
    [f"{17 * entry}-{17 * entry + 16}" for entry in range(4)] + [""] * 4,
    [24] * 4 + [4] * 4,
    [
        [10, 21, 21, 21, 31, 41, 41, 41],
        [21, 10, 21, 21, 41, 31, 41, 41],
        [21, 21, 10, 21, 41, 41, 31, 41],
        [21, 21, 21, 10, 41, 41, 41, 31],
        [31, 41, 41, 41, 10, 41, 41, 41],
        [41, 31, 41, 41, 41, 10, 41, 41],
        [41, 41, 31, 41, 41, 41, 10, 41],
        [41, 41, 41, 31, 41, 41, 41, 10],
    ],
)

CXL = machine(
    "2-socket Xeon with a CXL memory expander on the first socket",
    ["0-15", "16-31", ""],
    [64, 64, 128],
    [[10, 21, 14], [21, 10, 24], [14, 24, 10]],
    sockets=["0-15", "16-31"],
)

CPU_ONLY_NODE = machine(
    "a node_table with DIMMs on one socket only: NUMA node 1 has CPUs and no memory",
    ["0-7", "8-15"],
    [64, 0],
    [[10, 21], [21, 10]],
)

POWER9 = machine(
    "2-socket POWER9: NUMA nodes 0 and 8, SMT4",
    ["0-63", "64-127"],
    [256, 256],
    [[10, 40], [40, 10]],
    ids=[0, 8],
    threads=[f"{4 * core}-{4 * core + 3}" for core in range(32)],
)

OFFLINE = machine(
    "a Xeon with CPUs 3 and 6 switched off",
    ["0-2", "4-5,7"],
    [8, 8],
    threads=["0-1", "2", "4-5", "7"],
)

SIXTEEN = machine(
    "4-socket server, sub-NUMA clustering: 16 NUMA nodes",
    [f"{8 * entry}-{8 * entry + 7}" for entry in range(16)],
    [32] * 16,
    [[10 if a == b else 11 if a // 4 == b // 4 else 20 for b in range(16)] for a in range(16)],
    sockets=["0-31", "32-63", "64-95", "96-127"],
)

THIRTY_TWO = machine(
    "32 NUMA nodes on a ring of eight boards",
    [f"{8 * entry}-{8 * entry + 7}" for entry in range(32)],
    [32] * 32,
    [
        [10 if a == b else 12 + 8 * min(abs(a // 4 - b // 4), 8 - abs(a // 4 - b // 4)) for b in range(32)]
        for a in range(32)
    ],
)

HUGE = machine(
    "two NUMA nodes, 2 MiB and 1 GiB pages set aside",
    ["0-7", "8-15"],
    [32, 32],
    hugepages=[{2 * MIB: 4 * GIB}, {2 * MIB: 4 * GIB, GIB: 8 * GIB}],
)

ISOLATED = Machine(
    (
        NumaNode(0, CpuSet.parse("0-4,8-9"), 8 * GIB, {0: 10, 1: 20}, isolated=CpuSet.parse("5-7")),
        NumaNode(1, CpuSet.parse("10-19"), 8 * GIB, {0: 20, 1: 10}),
    ),
    cores=tuple(CpuSet.parse(f"{cpu}-{cpu + 1}") for cpu in range(0, 20, 2)),
    name="two NUMA nodes of 10 CPUs, SMT, booted with isolcpus=5-7",
)

GPU_MEMORY = Machine(
    (
        NumaNode(0, CpuSet.parse("0-3"), 8 * GIB, {0: 10, 8: 40, 254: 80, 255: 80}),
        NumaNode(8, CpuSet.parse("4-7"), 8 * GIB, {0: 40, 8: 10, 254: 80, 255: 80}),
        NumaNode(254, CpuSet(), 32 * GIB, {0: 80, 8: 80, 254: 10, 255: 80}, withheld=True),
        NumaNode(255, CpuSet(), 32 * GIB, {0: 80, 8: 80, 254: 80, 255: 10}, withheld=True),
    ),
    name="POWER9 with two GPUs, whose memory the kernel shows as NUMA nodes",
)

ALL = (
    NO_NUMA, SMALL, XEON, XEON_SNC2, EPYC_NPS1, EPYC_NPS4, KUNPENG_920, ALTRA, KNL_FLAT, CXL, CPU_ONLY_NODE, POWER9,
    OFFLINE, SIXTEEN, THIRTY_TWO, HUGE, ISOLATED, GPU_MEMORY,
)  # fmt: skip
