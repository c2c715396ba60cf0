"""The same shops without numakin: kube-scheduler alone, and what the kubelet or nobody does on the node.

Both are kind to the other side: every container counts as if it were Guaranteed with whole CPUs, so that the kubelet
aligns it at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from demo.locality import Place
from demo.shop import Pod
from placement.model.cpuset import NumaSet
from placement.model.topology import Machine
from standins.scheduler.cache import Room
from standins.scheduler.scheduler import Scheduler

Chooser = Callable[[dict[int, float], int], int]


def lowest_first(free: dict[int, float], cpu_milli: int) -> int:
    """The kubelet's topology manager: the lowest-numbered NUMA node that fits."""
    return next((one for one in sorted(free) if free[one] >= cpu_milli), max(free, key=lambda one: free[one]))


def spread(free: dict[int, float], _cpu_milli: int) -> int:
    """The emptiest NUMA node, as the kernel's load balancing or a spreading policy would."""
    return max(sorted(free), key=lambda one: free[one])


def rooms(machines: Mapping[str, Machine]) -> dict[str, Room]:
    """What each node has for pods."""
    return {
        name: Room(1000 * len(machine.cpus), sum(numa_node.memory for numa_node in machine.numa_nodes))
        for name, machine in machines.items()
    }


def placed(machines: Mapping[str, Machine], pods: Sequence[Pod], choose: Chooser, seed: int) -> dict[Pod, Place]:
    scheduler = Scheduler(rooms(machines), random=Random(seed))  # noqa: S311 - lots, no secret
    free = {
        name: {cpu_node: 1000.0 * len(machine.node(cpu_node).cpus) for cpu_node in machine.cpu_nodes}
        for name, machine in machines.items()
    }
    places = {}
    for pod in pods:
        node = scheduler.schedule({}, pod.workload, Room(pod.service.cpu_milli, pod.service.memory)).node
        numa_node = choose(free[node], pod.service.cpu_milli)
        free[node][numa_node] -= pod.service.cpu_milli
        places[pod] = Place(node, NumaSet.of((numa_node,)))
    return places
