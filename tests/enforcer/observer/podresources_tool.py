"""What reads podresources at a socket, the kubelet's or numakin's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from lab.standins.patience import PATIENCE_S
from numakin.wire import podresources_pb2 as pb
from numakin.wire import podresources_pb2_grpc


class Tool:
    """A monitoring tool that reads podresources."""

    def __init__(self, stub: podresources_pb2_grpc.PodResourcesListerStub) -> None:
        self._stub = stub

    def containers(self) -> dict[str, pb.ContainerResources]:
        """All that List names, by NAMESPACE/POD/CONTAINER."""
        listed = self._stub.List(pb.ListPodResourcesRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        return {
            f"{pod.namespace}/{pod.name}/{container.name}": container
            for pod in listed.pod_resources
            for container in pod.containers
        }

    def pod(self, namespace: str, name: str) -> pb.PodResources:
        request = pb.GetPodResourcesRequest(pod_namespace=namespace, pod_name=name)
        return self._stub.Get(request, timeout=PATIENCE_S, wait_for_ready=True).pod_resources

    def allocatable(self) -> pb.AllocatableResourcesResponse:
        request = pb.AllocatableResourcesRequest()
        return self._stub.GetAllocatableResources(request, timeout=PATIENCE_S, wait_for_ready=True)


@contextmanager
def tool(path: Path) -> Iterator[Tool]:
    options = [("grpc.default_authority", "localhost"), ("grpc.initial_reconnect_backoff_ms", 100)]
    with grpc.insecure_channel(f"unix:{path}", options) as channel:
        yield Tool(podresources_pb2_grpc.PodResourcesListerStub(channel))
