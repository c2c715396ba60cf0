"""Which CPUs the two ends of a workload run on, in each way that is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numakin.compare.design import Design
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine

TOGETHER, SPREAD, UNPINNED, AGAIN = "together", "spread", "unpinned", "unpinned again"
"""`unpinned again` is the control: the same as `unpinned`, so that any difference between the two is noise."""

ON_ONE_MACHINE = Design(
    (TOGETHER, SPREAD, UNPINNED, AGAIN), pairs=((TOGETHER, SPREAD), (TOGETHER, UNPINNED)), control=(AGAIN, UNPINNED)
)


class NothingToCompare(ValueError):
    """A machine on which the ways are the same."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way. server, client: the CPUs of the two ends."""

    name: str
    server: CpuSet
    client: CpuSet


def arms(machine: Machine, usable: CpuSet) -> tuple[Arm, ...]:
    """The ways, each with as many CPUs for either end but `unpinned`, which has all. usable: CPUs that may be used.

    No physical core is cut, nor has CPUs of both ends, and either end has as many cores in each way: SMT is no part of
    the difference. The two NUMA nodes are the first with CPUs to spare and the farthest one from it. NothingToCompare
    on a machine with one, or where a NUMA node has too few cores.
    """
    homes = [(node, node.cpus & usable) for node in machine.numa_nodes]
    homes = [(node, cpus) for node, cpus in homes if cpus]
    if len(homes) < 2:
        where = f"CPUs {homes[0][1]} are all on one NUMA node" if homes else "no CPU may be used"
        raise NothingToCompare(f"there is nothing to compare on this machine: {where}")
    home, near = homes[0]
    away, far = max(homes[1:], key=lambda other: home.distances.get(other[0].id, 0))
    server, beside, apart = _ends(_cores(machine, near), _cores(machine, far))
    if not server:
        raise NothingToCompare(
            f"both ends do not fit on NUMA node {home.id} (usable CPUs {near}) side by side, each with a core of its "
            f"own that has as many usable CPUs as one of NUMA node {away.id} ({far})"
        )
    every = CpuSet.of(cpu for _, cpus in homes for cpu in cpus)
    return (
        Arm(TOGETHER, server, beside),
        Arm(SPREAD, server, apart),
        Arm(UNPINNED, every, every),
        Arm(AGAIN, every, every),
    )


def _cores(machine: Machine, cpus: CpuSet) -> dict[int, list[CpuSet]]:
    """These CPUs by core, in order, for each number of siblings: SMT may be off on some, or some not be usable."""
    alike: dict[int, list[CpuSet]] = {}
    for core in dict.fromkeys(machine.core_of(cpu) & cpus for cpu in cpus):
        alike.setdefault(len(core), []).append(core)
    return alike


def _ends(near: dict[int, list[CpuSet]], far: dict[int, list[CpuSet]]) -> tuple[CpuSet, CpuSet, CpuSet]:
    """Two disjoint sets of near cores and one of far ones, all with as many of each number of siblings."""
    server, beside, apart = CpuSet(), CpuSet(), CpuSet()
    for siblings, cores in near.items():
        others = far.get(siblings, [])
        count = min(len(cores) // 2, len(others))
        server |= _all(cores[:count])
        beside |= _all(cores[count : 2 * count])
        apart |= _all(others[:count])
    return server, beside, apart


def _all(cores: Sequence[CpuSet]) -> CpuSet:
    return CpuSet.of(cpu for core in cores for cpu in core)
