"""The cases by which the kubelet's static CPU manager is tested (Kubernetes 1.23 to 1.34, `cpu_assignment_test.go` and
`policy_test.go` of pkg/kubelet/cm/cpumanager), as facts: which CPUs are free, how many are wanted, which it takes.
"""

from __future__ import annotations

from typing import NamedTuple

from numakin.placement.model.topology import Machine
from tests.machines import machine


def _siblings(cores: int, apart: int) -> list[str]:
    return [f"{core},{core + apart}" for core in range(cores)]


def _of_caches(name: str, sockets: int, caches: int, cores: int, threads: int) -> Machine:
    """One NUMA node a socket; so many caches in each, of so many cores, siblings last."""
    whole = sockets * caches * cores
    groups = [
        ",".join(f"{first + at * whole}-{first + cores - 1 + at * whole}" for at in range(threads))
        for first in range(0, whole, cores)
    ]
    return machine(
        name,
        [",".join(groups[at : at + caches]) for at in range(0, len(groups), caches)],
        [64] * sockets,
        threads=_siblings(whole, whole) if threads == 2 else (),
        caches=groups,
        sockets=[",".join(groups[at : at + caches]) for at in range(0, len(groups), caches)],
    )


ONE_SOCKET = machine("one socket of 4 cores, SMT", ["0-7"], [64], threads=_siblings(4, 4), sockets=["0-7"])
TWO_SOCKETS = machine(
    "two sockets of 3 cores, SMT",
    ["0,2,4,6,8,10", "1,3,5,7,9,11"],
    [64, 64],
    threads=_siblings(6, 6),
    sockets=["0,2,4,6,8,10", "1,3,5,7,9,11"],
)
TWO_SOCKETS_NO_SMT = machine("two sockets of 4 cores", ["0-3", "4-7"], [64, 64], sockets=["0-3", "4-7"])
FOUR_NODES = machine(
    "two sockets of two NUMA nodes of 10 cores, SMT",
    [f"{first}-{first + 9},{first + 40}-{first + 49}" for first in (0, 10, 20, 30)],
    [64] * 4,
    [[10 if a == b else 11 if a // 2 == b // 2 else 21 for b in range(4)] for a in range(4)],
    threads=_siblings(40, 40),
    sockets=["0-19,40-59", "20-39,60-79"],
)
CACHES_OF_4 = _of_caches("one NUMA node of 8 caches of 4 cores", 1, 8, 4, 1)
CACHES_OF_8 = _of_caches("one NUMA node of 4 caches of 8 cores", 1, 4, 8, 1)
CACHES_OF_4_SMT = _of_caches("one NUMA node of 16 caches of 4 cores, SMT", 1, 16, 4, 2)
CACHES_OF_8_SMT = _of_caches("one NUMA node of 16 caches of 8 cores, SMT", 1, 16, 8, 2)
ONE_CACHE = machine("one NUMA node of 24 cores under one cache", ["0-23"], [64], caches=["0-23"])


class Case(NamedTuple):
    """taken: empty where it refuses. ours: another answer of numakin's, None where it is the same; why: the reason."""

    machine: Machine
    free: str
    wanted: int
    taken: str
    ours: str | None = None
    why: str = ""
    cores: bool = False


PACKED = {
    "more than there are": Case(ONE_SOCKET, "0,2,4,6", 5, ""),
    "one": Case(ONE_SOCKET, "0-7", 1, "0"),
    "one, of a core in use": Case(ONE_SOCKET, "1,3,5-7", 1, "6"),
    "a core": Case(ONE_SOCKET, "0-7", 2, "0,4"),
    "all": Case(ONE_SOCKET, "0-7", 8, "0-7", "", "a machine keeps a CPU that is nobody's own"),
    "the only whole core": Case(ONE_SOCKET, "0-3,6", 2, "2,6"),
    "one of the fuller socket": Case(
        TWO_SOCKETS,
        "1-5,7-11",
        1,
        "2",
        "1",
        "without kin the emptier NUMA node is taken, so that groups have room to grow",
    ),
    "a socket": Case(TWO_SOCKETS, "0-11", 6, "0,2,4,6,8,10"),
    "a socket and a core": Case(TWO_SOCKETS, "0-11", 8, "0-2,4,6-8,10"),
    "a NUMA node": Case(FOUR_NODES, "0-79", 20, "0-9,40-49"),
    "the next NUMA node": Case(FOUR_NODES, "10-39,50-79", 20, "10-19,50-59"),
    "a socket of two NUMA nodes": Case(FOUR_NODES, "0-79", 40, "0-19,40-59"),
    "three NUMA nodes": Case(FOUR_NODES, "0-79", 60, "0-29,40-69"),
    "three NUMA nodes, a core of the first in use": Case(FOUR_NODES, "1-39,41-79", 60, "10-39,50-79"),
    "three NUMA nodes and two cores": Case(FOUR_NODES, "0-79", 64, "0-31,40-71"),
}

DISTRIBUTED = {
    "two cores of each socket": Case(TWO_SOCKETS, "0-11", 8, "0-3,6-9"),
    "eight cores of each of four": Case(FOUR_NODES, "0-79", 64, "0-7,10-17,20-27,30-37,40-47,50-57,60-67,70-77"),
    "eight cores of each of three": Case(FOUR_NODES, "0-79", 48, "0-7,10-17,20-27,40-47,50-57,60-67"),
    "thirteen cores of two": Case(FOUR_NODES, "0-79", 26, "0-6,10-16,40-45,50-55"),
    "thirteen cores of two, whole": Case(FOUR_NODES, "0-79", 26, "0-6,10-15,40-46,50-55", cores=True),
    "31 cores of four": Case(FOUR_NODES, "0-79", 62, "0-7,10-17,20-27,30-37,40-47,50-57,60-66,70-76"),
    "31 cores of four, whole": Case(
        FOUR_NODES, "0-79", 62, "0-7,10-17,20-27,30-36,40-47,50-57,60-67,70-76", cores=True
    ),
    "31 cores of four, two of them fuller": Case(
        FOUR_NODES,
        "0-8,10-18,20-39,40-48,50-58,60-79",
        62,
        "0-7,10-17,20-27,30-37,40-46,50-56,60-67,70-77",
    ),
    "17 cores of which two NUMA nodes have eight": Case(
        FOUR_NODES,
        "0-3,10-13,20-23,30-36,40-43,50-53,60-63,70-76",
        34,
        "0-3,10-13,20-23,30-34,40-43,50-53,60-63,70-74",
    ),
    "two cores of each of four": Case(
        FOUR_NODES,
        "0-2,10-12,20-22,30-32,40-41,50-51,60-61,70-71",
        16,
        "0-1,10-11,20-21,30-31,40-41,50-51,60-61,70-71",
    ),
    "eight cores of each of three, one of them in use": Case(
        FOUR_NODES, "3-39,43-79", 48, "10-17,20-27,30-37,50-57,60-67,70-77"
    ),
}

ACROSS_CORES = {
    "three of four cores": Case(ONE_SOCKET, "0-7", 3, "0-2"),
    "two cores of a socket": Case(TWO_SOCKETS, "0-11", 2, "0,2"),
    "three cores of a socket": Case(TWO_SOCKETS, "0-11", 3, "0,2,4"),
    "a socket": Case(TWO_SOCKETS, "0-11", 6, "0,2,4,6,8,10"),
    "a socket and two cores": Case(TWO_SOCKETS, "0-11", 8, "0-4,6,8,10"),
    "without SMT": Case(TWO_SOCKETS_NO_SMT, "0-7", 2, "0-1"),
    "eight cores of a NUMA node": Case(FOUR_NODES, "0-79", 8, "0-7"),
}

ALIGNED_BY_SOCKET: dict[str, tuple[Machine, str, int, bool, dict[str, bool]]] = {
    "off: the narrowest alone": (
        FOUR_NODES, "2-3,11", 2, False,
        {"0": True, "0-1": False, "0,2": False, "0,3": False, "0-2": False, "0-1,3": False, "0,2-3": False, "0-3": False},
    ),
    "a socket's other NUMA node too": (
        FOUR_NODES, "2-3,11", 2, True,
        {"0": True, "0-1": True, "0,2": False, "0,3": False, "0-2": False, "0-1,3": False, "0,2-3": False, "0-3": False},
    ),
    "two sockets where two are needed": (FOUR_NODES, "0-28,40-57", 41, True, {"0-2": True, "0-3": True}),
}  # fmt: skip
"""The machine, the CPUs that are free, how many are wanted, whether the option is on; then each set of NUMA nodes that has
them, and whether the kubelet prefers it (`topology_hints_test.go`).
"""

BY_CACHE = {
    "a pod that a free cache holds": Case(CACHES_OF_4_SMT, "2-63,66-127", 8, "4-7,68-71", cores=True),
    "three caches' worth, some in use": Case(CACHES_OF_4, "4-7,16-19,24-31", 12, "4-7,16-19,24-27", cores=True),
    "one and a half caches": Case(CACHES_OF_4_SMT, "2-3,8-63,66-67,72-127", 12, "2-3,8-11,66-67,72-75", cores=True),
    "one that fits what is left of a cache": Case(
        CACHES_OF_8_SMT, "2-7,10-127,130-135,138-255", 12, "2-7,130-135", cores=True
    ),
    "one that fits no cache in use": Case(
        CACHES_OF_8_SMT, "2-7,10-127,130-135,138-255", 14, "16-22,144-150", cores=True
    ),
    "a cache, all of them half in use": Case(CACHES_OF_8, "4-7,12-15,20-23,28-31", 8, "4-7,12-15", cores=True),
    "one cache only, in pieces": Case(ONE_CACHE, "2-5,10-11,16-17,20-23", 12, "2-5,10-11,16-17,20-23"),
}
