"""The kubelet's podresources API: one call for every pod of the node, and what of the answer the hook receives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import grpc

from numakin.placement.model.cpuset import NumaSet
from numakin.wire import bounds, podresources_pb2_grpc
from numakin.wire import local_pb2 as local
from numakin.wire import podresources_pb2 as pb
from numakin.wire import report_pb2 as report

TIMEOUT_S = 2.0

MOST_ALIKE = 16
"""Devices of one resource near to the same NUMA nodes that are reported of a container. Plugins that share a device out
hand it over as thousands, each worth nothing by itself; of whole ones no server has more behind a NUMA node.
"""

MOST_ROWS = 10_000
"""Containers with devices: more than any node runs of containers."""

MOST_BYTES = 16 << 20
"""Of an answer, as the kubelet's own clients have it."""

OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MOST_BYTES),
)


class Absent(Exception):
    """There is no socket, as where no kubelet is."""


class Unanswered(Exception):
    """The socket is there, and what answers does not speak the API; the text says what happened."""


class Lister:
    """Asks at the socket with this path; dials when it has to."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._channel: grpc.Channel | None = None

    def pods(self) -> list[pb.PodResources]:
        """Every pod of the node. Raises Absent, Unanswered."""
        try:
            answer = self._stub().List(pb.ListPodResourcesRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise self._unanswered(error) from error
        return list(answer.pod_resources)

    def allocatable_devices(self) -> list[pb.ContainerDevices] | None:
        """All devices of plugins that are well; None from a kubelet that does not say. Raises Absent, Unanswered."""
        answer = self._said_allocatable()
        return None if answer is None else list(answer.devices)

    def allocatable(self) -> pb.AllocatableResourcesResponse:
        """What can be allocated; empty from a kubelet that does not say. Raises Absent, Unanswered."""
        answer = self._said_allocatable()
        return pb.AllocatableResourcesResponse() if answer is None else answer

    def _said_allocatable(self) -> pb.AllocatableResourcesResponse | None:
        """None from a kubelet before 1.23, or with its gate KubeletPodResourcesGetAllocatable off."""
        try:
            answer: pb.AllocatableResourcesResponse = self._stub().GetAllocatableResources(
                pb.AllocatableResourcesRequest(), timeout=TIMEOUT_S
            )
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN):
                return None
            raise self._unanswered(error) from error
        return answer

    def _stub(self) -> podresources_pb2_grpc.PodResourcesListerStub:
        if not Path(self._path).exists():
            raise Absent
        if self._channel is None:
            self._channel = grpc.insecure_channel(f"unix:{self._path}", OPTIONS)
        return podresources_pb2_grpc.PodResourcesListerStub(self._channel)

    def _unanswered(self, error: grpc.RpcError) -> Unanswered:
        """A kubelet that restarts makes a new socket: the next question dials anew, without gRPC's growing pause."""
        self.close()
        return Unanswered(f"{error.code().name}: {error.details()}")

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def told_of(pods: Iterable[pb.PodResources], allocatable: Iterable[pb.ContainerDevices] | None = None) -> local.Devices:
    """A row for each container that has devices whose NUMA nodes are known, in the order of their names; and how many
    of the allocatable ones are left. allocatable None: the kubelet does not say.
    """
    pods = list(pods)
    rows = [
        local.Devices.Row(namespace=pod.namespace, pod=pod.name, container=container.name, numa_nodes=near)
        for pod in pods
        for container in pod.containers
        if (near := _near(container.devices))
    ]
    rows.sort(key=lambda row: (row.namespace, row.pod, row.container))
    return local.Devices(rows=rows[:MOST_ROWS], free=_free(pods, allocatable or ()))


def _near(devices: Iterable[pb.ContainerDevices]) -> list[str]:
    """The kubelet reports each device by itself, or several of one resource together."""
    alike: Counter[tuple[str, str]] = Counter()
    for device in devices:
        if nodes := _numa_nodes(device):
            alike[device.resource_name, str(nodes)] += len(device.device_ids)
    return sorted(nodes for (_, nodes), count in alike.items() for _ in range(min(count, MOST_ALIKE)))


def _free(pods: Iterable[pb.PodResources], allocatable: Iterable[pb.ContainerDevices]) -> list[report.FreeDevices]:
    """Of each resource and the NUMA nodes that devices of it are near to, also where none is left."""
    used = {
        (device.resource_name, name)
        for pod in pods
        for container in pod.containers
        for device in container.devices
        for name in device.device_ids
    }
    free: Counter[tuple[str, str]] = Counter()
    for device in allocatable:
        left = sum((device.resource_name, name) not in used for name in device.device_ids)
        free[device.resource_name, str(_numa_nodes(device))] += left
    rows = [
        report.FreeDevices(resource=resource, numa_nodes=near, free=count)
        for (resource, near), count in sorted(free.items())
    ]
    return rows[: bounds.FREE_DEVICES]


def _numa_nodes(device: pb.ContainerDevices) -> NumaSet:
    return NumaSet.of(node.ID for node in device.topology.nodes if 0 <= node.ID < bounds.NUMA_NODES)
