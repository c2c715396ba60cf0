"""Which CPUs the two ends of a workload run on, in each way that is compared."""

from __future__ import annotations

from dataclasses import dataclass

from comparison.design import Design
from placement.model.cpuset import CpuSet
from placement.model.topology import Machine

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

    The two NUMA nodes are the first with CPUs to spare and the farthest one from it. NothingToCompare on a machine with
    one, or where one CPU is all that a NUMA node has.
    """
    homes = [(node, node.cpus & usable) for node in machine.numa_nodes]
    homes = [(node, cpus) for node, cpus in homes if cpus]
    if len(homes) < 2:
        where = f"CPUs {homes[0][1]} are all on one NUMA node" if homes else "no CPU may be used"
        raise NothingToCompare(f"there is nothing to compare on this machine: {where}")
    home, near = homes[0]
    _, far = max(homes[1:], key=lambda other: home.distances.get(other[0].id, 0))
    half = min(len(near) // 2, len(far))
    if half == 0:
        raise NothingToCompare(
            f"NUMA node {home.id} has one usable CPU ({near}): both ends do not fit on it side by side"
        )
    server, rest = _first(near, half), CpuSet.of(sorted(near)[half : 2 * half])
    every = CpuSet.of(cpu for _, cpus in homes for cpu in cpus)
    return (
        Arm(TOGETHER, server, rest),
        Arm(SPREAD, server, _first(far, half)),
        Arm(UNPINNED, every, every),
        Arm(AGAIN, every, every),
    )


def _first(cpus: CpuSet, count: int) -> CpuSet:
    return CpuSet.of(sorted(cpus)[:count])
