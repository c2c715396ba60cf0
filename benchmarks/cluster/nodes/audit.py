"""Whether any NUMA node is over-committed, by the requests and cpusets alone, not by placement's own sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from numakin.placement.model.topology import Machine


@dataclass(frozen=True, slots=True)
class Confined:
    """A container and the NUMA nodes (a mask) that it can't leave. cpu_milli: millicores; memory: bytes.

    own: the CPUs (a mask) that it has for itself.
    """

    numa_nodes: int
    cpu_milli: int
    memory: int
    own: int = 0


@dataclass(frozen=True, slots=True)
class Overcommitment:
    """NUMA nodes (a mask) with more requested than they have: millicores, bytes, or exclusive CPUs."""

    node: str
    numa_nodes: int
    resource: str
    asked: int
    room: int


def overcommitments(node: str, machine: Machine, containers: Iterable[Confined]) -> list[Overcommitment]:
    """Each set of NUMA nodes to which some container is confined, and what all that is confined inside it asks for.

    A container that may use several NUMA nodes over-commits none of them by itself: it is counted for the set.
    CPUs that two containers have for themselves are there only once.
    """
    overcommitted = []
    rows = list(containers)
    for numa_nodes in sorted({row.numa_nodes for row in rows}):
        inside = [row for row in rows if row.numa_nodes & ~numa_nodes == 0]
        members = [numa_node for numa_node in machine.numa_nodes if numa_nodes >> numa_node.id & 1]
        own = [container.own for container in inside if container.own]
        for resource, requested, room in (
            ("exclusive CPUs", sum(cpus.bit_count() for cpus in own), reduce(or_, own, 0).bit_count()),
            (
                "cpu",
                sum(container.cpu_milli for container in inside),
                1000 * sum(len(member.cpus) for member in members),
            ),
            ("memory", sum(container.memory for container in inside), sum(member.memory for member in members)),
        ):
            if requested > room:
                overcommitted.append(Overcommitment(node, numa_nodes, resource, requested, room))
    return overcommitted
