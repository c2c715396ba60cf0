"""The cluster's nodes: well-known machines, each with something running already. Same random source, same nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from lab.standins.machines import MACHINES
from lab.standins.scheduler.cache import MOST_PODS, Room
from numakin.placement.model.topology import Machine

KINDS = ("xeon-8380", "epyc-7763-nps2", "xeon-8480-snc4", "kunpeng-920-4s", "epyc-7763-nps4", "xeon-e5-2680v4-in-turn")
"""Servers as clusters have them: two to eight NUMA nodes, 14 to 80 CPUs in each."""

BUSY = (0.15, 0.65)
"""The share of a NUMA node's CPUs that other pods, not opted in, already request: from nearly idle to busy."""

LARGEST_MILLI = 6000
"""What one of these other pods requests at most, in millicores."""


@dataclass(frozen=True, slots=True)
class Other:
    """A pod that has not opted in and that another owner pinned to one NUMA node."""

    uid: str
    numa_node: int
    cpu_milli: int


@dataclass(frozen=True)
class NodeSpec:
    """A node as it is before the first pod of ours."""

    name: str
    kind: str
    others: tuple[Other, ...]

    @cached_property
    def machine(self) -> Machine:
        return MACHINES[self.kind].machine

    @property
    def allocatable_milli(self) -> int:
        """CPU that kube-scheduler has to give, in millicores."""
        return 1000 * len(self.machine.cpus) - sum(other.cpu_milli for other in self.others)

    @property
    def memory(self) -> int:
        """Bytes."""
        return sum(numa_node.memory for numa_node in self.machine.numa_nodes)

    @property
    def room(self) -> Room:
        """What kube-scheduler has to give."""
        return Room(self.allocatable_milli, self.memory, MOST_PODS - len(self.others))


def population(count: int, random: Random) -> list[NodeSpec]:
    return [_node(f"node-{number:05}", KINDS[number % len(KINDS)], random) for number in range(count)]


def _node(name: str, kind: str, random: Random) -> NodeSpec:
    others: list[Other] = []
    for numa_node in MACHINES[kind].machine.numa_nodes:
        left = int(1000 * len(numa_node.cpus) * random.uniform(*BUSY))
        while left > 0:
            cpu_milli = min(left, random.randrange(500, LARGEST_MILLI, 250))
            others.append(Other(f"other-{name}-{len(others)}", numa_node.id, cpu_milli))
            left -= cpu_milli
    return NodeSpec(name, kind, tuple(others))
