"""NodeResourceTopology (topology.node.k8s.io/v1alpha2): a node's NUMA nodes and what is free on each, for the readers
of such objects.

As the Node Feature Discovery's topology updater writes them: a zone of type Node for each NUMA node, named node-ID,
with the SLIT distances as costs. What differs: `available` is what is left after all that numakin knows to be placed on
the NUMA node, not after exclusive CPUs alone; and there is no attribute topologyManagerPolicy, since that would tell
the scheduler's own NUMA plugin that the kubelet aligns pods, which is not the case here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.kube.publish import Desired
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.state.load_index import EMPTY, Load
from numakin.placement.state.occupancy import Occupancy

API_VERSION = "topology.node.k8s.io/v1alpha2"
_PATH = f"/apis/{API_VERSION}/noderesourcetopologies"

MEMORY_STEP = 64 * 1024 * 1024
"""Bytes to which available memory is rounded down: no object is written for less of a change."""


def topology(node: str, machine: Machine, occupancy: Occupancy, uid: str) -> Desired:
    """The object of one Kubernetes node. uid: of the Node object, which owns it: it goes when the Node goes."""
    load = occupancy.load(machine)
    members = {reservation.pod for reservation in occupancy.reservations.values() if reservation.opted_in}
    zones = [_zone(numa_node, machine, occupancy.reserved, load) for numa_node in machine.numa_nodes]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    body = {
        "apiVersion": API_VERSION,
        "kind": "NodeResourceTopology",
        "metadata": {"name": node, "ownerReferences": [owner]},
        "attributes": [{"name": "numakin.io/members", "value": str(len(members))}],
        "zones": zones,
    }
    return Desired(f"{_PATH}/{node}", body)


def _zone(numa_node: NumaNode, machine: Machine, reserved: CpuSet, load: Load) -> dict[str, Any]:
    free = numa_node.cpus - reserved
    carried = load.rows.get(numa_node.id, EMPTY)
    memory = numa_node.ordinary_memory
    left = max(0, memory - carried.memory) // MEMORY_STEP * MEMORY_STEP
    resources = [
        _resource("cpu", str(len(numa_node.all_cpus)), str(len(free)), _cpus(max(0, len(free) * 1000 - carried.cpu))),
        _resource("memory", str(memory), *(("0", "0") if numa_node.withheld else (str(memory), str(left)))),
    ]
    for size, amount in sorted(numa_node.hugepages.items()):
        taken = load.hugepages.get((numa_node.id, size), 0)
        resources.append(_resource(f"hugepages-{_size(size)}", str(amount), str(amount), str(max(0, amount - taken))))
    return {
        "name": _name(numa_node.id),
        "type": "Node",
        "costs": [{"name": _name(peer.id), "value": numa_node.distances[peer.id]} for peer in machine.numa_nodes],
        "attributes": [{"name": "numakin.io/cpus", "value": str(numa_node.cpus)}],
        "resources": resources,
    }


def _resource(name: str, capacity: str, allocatable: str, available: str) -> Mapping[str, str]:
    return {"name": name, "capacity": capacity, "allocatable": allocatable, "available": available}


def _name(numa_node: int) -> str:
    return f"node-{numa_node}"


def _cpus(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _size(size: int) -> str:
    for power, suffix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power}{suffix}"
    return str(size)
