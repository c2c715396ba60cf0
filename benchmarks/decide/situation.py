"""The machines and fillings that decisions are timed on."""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.decide.decide import Kin, Request, decide
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Live
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.optin.parsing import Cpus, OptIn
from numakin.placement.state.occupancy import Occupancy

CPUS = 32
"""CPUs of a NUMA node, two threads to a core and eight cores to a last-level cache."""

MEMORY = 64 << 30
FILL = 0.7
"""Share of the machine's CPUs that is requested before the timed decision."""

MEMBERS = 10
"""Members of a group, and so peers of the newcomer."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A filled machine, and a newcomer with its kin."""

    machine: Machine
    occupancy: Occupancy
    request: Request
    kin: Kin


def machine(numa_nodes: int) -> Machine:
    """Boards of four NUMA nodes on a ring."""
    boards = max(1, numa_nodes // 4)
    distances = {
        a: {b: 10 if a == b else 12 + 8 * _hops(a // 4, b // 4, boards) for b in range(numa_nodes)}
        for a in range(numa_nodes)
    }
    cpus = [CpuSet.of(range(CPUS * numa_node, CPUS * (numa_node + 1))) for numa_node in range(numa_nodes)]
    total = CPUS * numa_nodes
    return Machine(
        tuple(NumaNode(numa_node, cpus[numa_node], MEMORY, distances[numa_node]) for numa_node in range(numa_nodes)),
        cores=tuple(CpuSet.of((cpu, cpu + 1)) for cpu in range(0, total, 2)),
        caches=tuple(CpuSet.of(range(cpu, cpu + 16)) for cpu in range(0, total, 16)),
    )


def situation(
    numa_nodes: int, containers: int, cpus: Cpus = Cpus.SHARED, wide: float = 0.0, memory: int = 0
) -> Situation:
    """The newcomer asks as much as the others, or `wide` times a NUMA node's CPUs, all of them filled alike then.
    memory: bytes that it asks for, 0: as the others.
    """
    there = machine(numa_nodes)
    milli = int(FILL * 1000 * CPUS * numa_nodes / containers)
    usual = int(FILL * MEMORY * numa_nodes / containers / 2)
    occupancy = Occupancy(live=Live({node.id: node.memory for node in there.numa_nodes})).on(there)
    for number in range(containers):
        group = number if wide else number // MEMBERS
        request = _request(f"p{number}", f"shop/{group}", milli, usual, Cpus.SHARED)
        occupancy = decide(there, occupancy, request, Kin()).applied(occupancy, request)
    requested = int(wide * 1000 * CPUS) or min(milli, 4000)
    newcomer = _request("newcomer", "shop/0", requested, memory or usual, cpus)
    weights = {f"p{number}": 1.0 + number for number in range(min(MEMBERS, containers))}
    return Situation(there, occupancy, newcomer, Kin(weights, elsewhere=1.0))


def _request(pod: str, group: str, milli: int, memory: int, cpus: Cpus) -> Request:
    demand = Demand(milli, memory, memory)
    return Request(pod, f"{pod}-main", "main", OptIn(group, cpus=cpus, cpus_named=True), demand, demand)


def _hops(a: int, b: int, boards: int) -> int:
    apart = abs(a - b)
    return min(apart, boards - apart)
