"""What an operator sets for a whole machine, as the kubelet's topology manager and its users name it."""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.errors import BadTopology
from numakin.placement.model.topology import Machine


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's settings; both halves must hold the same for a prediction to come true.

    prefer_closest_numa_nodes: among equally wide sets of NUMA nodes the one with the shorter average distance. The
    kubelet's default is off, for compatibility with what it did before; here it is on.
    max_allowable_numa_nodes: refuse a machine with more; 0: no limit (the kubelet's limit of 8 guards its search).
    everyone: containers that have not opted in are moved off exclusive CPUs too (`shared-pool=all`).
    distribute_cpus_across_numa: exclusive CPUs that need several NUMA nodes are taken in equal parts, as the kubelet's
    option has it; else each NUMA node is filled before the next.
    align_by_socket: a set of several NUMA nodes is taken from as few sockets as the demand needs, even if that makes it
    wider, and `restricted` admits it, as the kubelet's option has it.
    distribute_cpus_across_cores: exclusive CPUs are taken from as many cores as there are, one thread of each before a
    second one of any, as the kubelet's option has it; whole cores where those are asked for.
    within_caches: members whose pods do not say it are kept within a last-level cache (`span=cache`).
    max_exclusive_cpus_per_namespace: exclusive CPUs that the containers of a namespace without a limit of its own may
    have together on this node; None: no limit.
    """

    prefer_closest_numa_nodes: bool = True
    max_allowable_numa_nodes: int = 0
    everyone: bool = False
    within_caches: bool = False
    distribute_cpus_across_numa: bool = False
    distribute_cpus_across_cores: bool = False
    align_by_socket: bool = False
    max_exclusive_cpus_per_namespace: int | None = None

    def check(self, machine: Machine, reserved: CpuSet = CpuSet()) -> None:
        """BadTopology, naming the setting, when this machine can't be run by these rules."""
        most, count = self.max_allowable_numa_nodes, len(machine.numa_nodes)
        if most < 0:
            raise BadTopology(f"max-allowable-numa-nodes must not be negative, as {most} is")
        if 0 < most < count:
            raise BadTopology(f"max-allowable-numa-nodes is {most}, the machine has {count} NUMA nodes")
        if not reserved <= machine.all_cpus:
            strange = reserved - machine.all_cpus
            raise BadTopology(f"reserved-cpus names CPUs {strange}, the machine's online CPUs are {machine.all_cpus}")
        if machine.cpus <= reserved:
            raise BadTopology(f"reserved-cpus {reserved} leaves no CPU for containers")
