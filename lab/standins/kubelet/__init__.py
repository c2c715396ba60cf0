"""The kubelet's side of the podresources API: a real gRPC server on a real unix socket."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import grpc

from numakin.wire import podresources_pb2 as pb
from numakin.wire import podresources_pb2_grpc

Device = tuple[str, tuple[int, ...]]
"""Its id, and the NUMA nodes that its plugin reports; empty: it reports none."""


class Kubelet(podresources_pb2_grpc.PodResourcesListerServicer):
    """Lists pods in the order they were admitted. refusal: what it answers with instead. says_free: not before 1.23."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refusal: grpc.StatusCode | None = None
        self.says_free = True
        self._lock = threading.Lock()
        self._pods: dict[tuple[str, str], pb.PodResources] = {}
        self._allocatable: list[pb.ContainerDevices] = []
        self._asked = threading.Semaphore(0)
        self._server: grpc.Server | None = None

    def __enter__(self) -> Self:
        self._server = grpc.server(ThreadPoolExecutor(2))
        podresources_pb2_grpc.add_PodResourcesListerServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.stop(grace=None).wait()

    def admit(self, namespace: str, name: str, container: str, resource: str = "", *devices: Device) -> None:
        """A pod's container, with its devices; as in a kubelet's answer, each is an entry by itself."""
        with self._lock:
            pod = self._pods.setdefault((namespace, name), pb.PodResources(namespace=namespace, name=name))
            pod.containers.add(name=container, devices=[_device(resource, *device) for device in devices])

    def plug(self, resource: str, *devices: Device) -> None:
        """Devices that a plugin registers."""
        with self._lock:
            self._allocatable += [_device(resource, *device) for device in devices]

    def give_cpus(self, namespace: str, name: str, cpus: Iterable[int]) -> None:
        """What the static CPU manager has given the first container of an admitted pod."""
        with self._lock:
            self._pods[namespace, name].containers[0].cpu_ids.extend(cpus)

    def remove(self, namespace: str, name: str) -> None:
        with self._lock:
            del self._pods[namespace, name]

    def was_asked(self, timeout_s: float) -> bool:
        """Waits for a question, each counts once."""
        return self._asked.acquire(timeout=timeout_s)

    def List(  # noqa: N802 - gRPC's name
        self, request: pb.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> pb.ListPodResourcesResponse:
        del request
        self._asked.release()
        if self.refusal is not None:
            context.abort(self.refusal, "refused by the test")
        with self._lock:
            return pb.ListPodResourcesResponse(pod_resources=self._pods.values())

    def GetAllocatableResources(  # noqa: N802 - gRPC's name
        self, request: pb.AllocatableResourcesRequest, context: grpc.ServicerContext
    ) -> pb.AllocatableResourcesResponse:
        del request
        if self.refusal is not None:
            context.abort(self.refusal, "refused by the test")
        if not self.says_free:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetAllocatableResources")
        with self._lock:
            return pb.AllocatableResourcesResponse(devices=self._allocatable)


def _device(resource: str, name: str, numa_nodes: Iterable[int]) -> pb.ContainerDevices:
    devices = pb.ContainerDevices(resource_name=resource, device_ids=[name])
    for numa_node in numa_nodes:
        devices.topology.nodes.add(ID=numa_node)
    return devices
