"""What the kubelet's podresources API would answer if numakin were its CPU and memory manager: pure functions.

The kubelet's own answer is the base, so that devices, claims and pods that have not opted in are as the kubelet knows
them. Members' containers get the exclusive CPUs and the bound memory that numakin gave them. Like the kubelet's, an
answer names CPUs of shared pools nowhere, and memory only where it is bound to NUMA nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Allocation, Occupancy
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb

UNITS = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
"""Of page sizes in the names of Kubernetes' hugepages resources, the largest first."""


def pods(
    of_kubelet: Iterable[pb.PodResources], containers: Iterable[local.LocalContainer], occupancy: Occupancy
) -> list[pb.PodResources]:
    """Every pod: the kubelet's in its order, then those that it did not list. containers: all that run here."""
    rows: dict[tuple[str, str], pb.PodResources] = {}
    for reported in of_kubelet:
        pod = rows[reported.namespace, reported.name] = pb.PodResources()
        pod.CopyFrom(reported)
    for container in containers:
        name = container.namespace, container.pod_name
        if name not in rows:
            rows[name] = pb.PodResources(namespace=container.namespace, name=container.pod_name)
        _fill(_row(rows[name], container.name), container, occupancy)
    return list(rows.values())


def allocatable(
    of_kubelet: pb.AllocatableResourcesResponse, machine: Machine, occupancy: Occupancy
) -> pb.AllocatableResourcesResponse:
    """All CPUs but the reserved ones, and the memory and hugepages of each NUMA node; devices as the kubelet has them.
    Like the kubelet's, it does not depend on what is allocated now.
    """
    return pb.AllocatableResourcesResponse(
        devices=of_kubelet.devices,
        cpu_ids=machine.cpus - occupancy.reserved,
        memory=[
            block
            for node in machine.numa_nodes
            if node.id in machine.mems
            for block in _memory(node.ordinary_memory, node.hugepages, NumaSet.of((node.id,)))
        ],
    )


def _row(pod: pb.PodResources, name: str) -> pb.ContainerResources:
    known = next((container for container in pod.containers if container.name == name), None)
    return known if known is not None else pod.containers.add(name=name)


def _fill(row: pb.ContainerResources, container: local.LocalContainer, occupancy: Occupancy) -> None:
    """What another owner of the container's cpuset gave it stays as the kubelet reports it."""
    allocation = occupancy.allocations.get(container.id)
    if allocation is None or not container.opted_in or allocation.externally_managed:
        return
    row.cpu_ids[:] = allocation.exclusive
    del row.memory[:]
    row.memory.extend(_bound(container, allocation))


def _bound(container: local.LocalContainer, allocation: Allocation) -> Iterator[pb.ContainerMemory]:
    if allocation.mems:
        yield from _memory(container.memory, container.hugepages, allocation.mems)


def _memory(memory: int, hugepages: Mapping[int, int], numa_nodes: NumaSet) -> Iterator[pb.ContainerMemory]:
    """A block for each kind of memory, near to all of these NUMA nodes; in bytes, those of 0 are left out."""
    amounts = {"memory": memory} | {f"hugepages-{_quantity(size)}": hugepages[size] for size in sorted(hugepages)}
    for kind, size in amounts.items():
        if size:
            topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=node) for node in numa_nodes])
            yield pb.ContainerMemory(memory_type=kind, size=size, topology=topology)


def _quantity(size: int) -> str:
    return next((f"{size // unit}{suffix}" for suffix, unit in UNITS if size % unit == 0), str(size))
