"""A kubelet's device plugin: devices near to one NUMA node each, which exist in its answers alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from lab.standins.patience import until

PROTOCOL: Any
SERVICES: Any
PROTOCOL, SERVICES = grpc.protos_and_services("tests/e2e/lab/device_plugin.proto")

REGISTERED_S = 30.0


class DevicePlugin(SERVICES.DevicePluginServicer):  # type: ignore[misc]
    """devices: by name, the NUMA node that each is near to. It hands out whichever the kubelet chooses."""

    def __init__(self, devices: Mapping[str, int]) -> None:
        self.ended = threading.Event()
        self._devices = [
            PROTOCOL.Device(ID=name, health="Healthy", topology={"nodes": [{"ID": numa_node}]})
            for name, numa_node in devices.items()
        ]

    def GetDevicePluginOptions(self, _request: Any, _context: grpc.ServicerContext) -> Any:  # noqa: N802 - gRPC's name
        return PROTOCOL.DevicePluginOptions()

    def ListAndWatch(self, _request: Any, _context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802 - gRPC's name
        yield PROTOCOL.ListAndWatchResponse(devices=self._devices)
        self.ended.wait()

    def Allocate(self, request: Any, _context: grpc.ServicerContext) -> Any:  # noqa: N802 - gRPC's name
        return PROTOCOL.AllocateResponse(container_responses=[{} for _ in request.container_requests])


@contextmanager
def plugged(folder: Path, resource: str, devices: Mapping[str, int]) -> Iterator[None]:
    """While the body runs, a kubelet whose device plugins' folder this is has these devices. It empties the folder as it
    starts.
    """
    until((folder / "kubelet.sock").exists, "the kubelet to take device plugins")
    plugin = DevicePlugin(devices)
    server = grpc.server(ThreadPoolExecutor(4))
    SERVICES.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{folder / 'lab.sock'}")
    server.start()
    try:
        with grpc.insecure_channel(
            f"unix:{folder / 'kubelet.sock'}", [("grpc.default_authority", "localhost")]
        ) as channel:
            request = PROTOCOL.RegisterRequest(version="v1beta1", endpoint="lab.sock", resource_name=resource)
            SERVICES.RegistrationStub(channel).Register(request, timeout=REGISTERED_S, wait_for_ready=True)
        yield
    finally:
        plugin.ended.set()
        server.stop(grace=None).wait()
