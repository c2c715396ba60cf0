"""Whether any NUMA node is over-committed, told from the requests and cpusets alone: not by placement's own sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placement.topology import Machine


@dataclass(frozen=True, slots=True)
class Confined:
    """A container and the NUMA nodes (a mask) that it can't leave. cpu_milli: thousandths of a CPU; memory: bytes."""

    numa_nodes: int
    cpu_milli: int
    memory: int


@dataclass(frozen=True, slots=True)
class Overcommitment:
    """NUMA nodes (a mask) that are asked for more than they have: thousandths of a CPU, or bytes."""

    node: str
    numa_nodes: int
    resource: str
    asked: int
    room: int


def overcommitments(node: str, machine: Machine, containers: Iterable[Confined]) -> list[Overcommitment]:
    """Each set of NUMA nodes to which some container is confined, and what all that is confined inside it asks for.

    A container that may use several NUMA nodes over-commits none of them by itself: it is counted for the set.
    """
    found = []
    rows = list(containers)
    for numa_nodes in sorted({one.numa_nodes for one in rows}):
        inside = [one for one in rows if one.numa_nodes & ~numa_nodes == 0]
        members = [one for one in machine.numa_nodes if numa_nodes >> one.id & 1]
        for resource, asked, room in (
            ("cpu", sum(one.cpu_milli for one in inside), 1000 * sum(len(one.cpus) for one in members)),
            ("memory", sum(one.memory for one in inside), sum(one.memory for one in members)),
        ):
            if asked > room:
                found.append(Overcommitment(node, numa_nodes, resource, asked, room))
    return found
