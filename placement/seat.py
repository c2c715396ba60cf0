"""The two things that are held on a machine: a seat is room on NUMA nodes, a holding what a live container has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.wishes import Pool


class Part(NamedTuple):
    """How much of a seat's demand one of its NUMA nodes carries, in proportion to the others: milli-CPU, bytes."""

    numa_node: int
    cpu_milli: int
    memory: int


@dataclass(frozen=True, slots=True)
class Seat:
    """Room held on NUMA nodes.

    key: the pod's uid, or UID/CONTAINER-NAME in container scope, or a container's id where it has not opted in.
    group: NAMESPACE/name, or empty for what has not opted in (and for members whose group is not learned yet).
    parts: how the demand lies on several NUMA nodes; empty: by their number of CPUs. alone: it shares its NUMA nodes
    with no other opted-in pod, those in the reclaimed pool aside. size: members that its group expects, 0: not told.
    workload: NAMESPACE/KIND/NAME of the controller that owns the pod, empty: not told.
    """

    key: str
    pod: str
    group: str
    numa_nodes: NumaSet
    demand: Demand
    parts: tuple[Part, ...] = ()
    pool: Pool = Pool.SHARED
    alone: bool = False
    size: int = 0
    workload: str = ""

    @property
    def opted_in(self) -> bool:
        """Whether it is a seat that was chosen, by its key: what has not opted in is known by its container's id."""
        return self.key == self.pod or self.key.startswith(self.pod + "/")


@dataclass(frozen=True, slots=True)
class Holding:
    """What one live container has.

    cpus, mems: empty when not limited by us. exclusive: those of its CPUs that nobody else may use. foreign: somebody
    else sets its CPUs (the kubelet's static policy, another plugin), so that it is never updated.
    """

    container: str
    name: str
    pod: str
    seat: str
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    exclusive: CpuSet = CpuSet()
    foreign: bool = False
