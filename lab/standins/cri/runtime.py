"""A container runtime that runs nothing, but answers CRI as containerd does, and makes the cgroups that it would.

As on containerd, a container's cgroup comes with its start. Pods and containers outlive a restart.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Self

import grpc

from lab.standins.cri.cgroups import Cgroups
from lab.standins.runtime.manners import MANNERS
from numakin.wire import cri_pb2 as cri
from numakin.wire import cri_pb2_grpc

ENDED = None


class CriRuntime(cri_pb2_grpc.RuntimeServiceServicer):
    """Use as a context manager, or start() and stop(). Methods may be called from any thread.

    name, version: as it calls itself. events: False for a runtime that has none. listeners: the open
    event streams.
    """

    def __init__(
        self, socket: Path, cgroups: Cgroups, *, name: str = "containerd", version: str = "2.1.9", events: bool = True
    ) -> None:
        self._socket, self.cgroups = socket, cgroups
        self._name, self._version, self._events = name, version, events
        self._cgroup_prefix = MANNERS[name].cgroup_prefix if name in MANNERS else ""
        self._lock = threading.RLock()
        self._sandboxes: dict[str, cri.PodSandbox] = {}
        self._containers: dict[str, cri.ContainerStatusResponse] = {}
        self._sandbox_of: dict[str, str] = {}
        self._listeners: list[queue.SimpleQueue[str | None]] = []
        self._numbers = count(1)
        self._server: grpc.Server | None = None
        self.calls: list[str] = []
        self.dropped = False
        """Events are lost while it is set."""
        self.failing: Counter[str] = Counter()
        """By the id of a sandbox or a container how many of the next questions for its status fail."""

    def start(self) -> None:
        server = grpc.server(ThreadPoolExecutor(8))
        cri_pb2_grpc.add_RuntimeServiceServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{self._socket}")
        server.start()
        self._server = server

    def stop(self) -> None:
        if self._server is not None:
            with self._lock:
                for listener in self._listeners:
                    listener.put(ENDED)
            self._server.stop(0).wait()
            self._server = None
            self._socket.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def listeners(self) -> int:
        with self._lock:
            return len(self._listeners)

    # What the kubelet does

    def run_pod(self, name: str, annotations: Mapping[str, str] | None = None, *, memory: int | None = 64 << 20) -> str:
        """memory: the sum of its containers' limits; None: not every one has a limit."""
        with self._lock:
            number = next(self._numbers)
            key = f"sandbox-{number}"
            self._sandboxes[key] = cri.PodSandbox(
                id=key,
                metadata=cri.PodSandboxMetadata(name=name, uid=f"uid-{number}", namespace="default"),
                state=cri.SANDBOX_READY,
                annotations=annotations or {},
            )
            self.cgroups.limit(self._pod_path(key), memory)
            return key

    def create(self, pod: str, *, shares: int = 512, memory: int = 64 << 20, cpuset: str = "") -> str:
        """cpuset: as a kubelet with the static policy sets it."""
        with self._lock:
            key = f"container-{next(self._numbers)}"
            limits = cri.LinuxContainerResources(cpu_shares=shares, memory_limit_in_bytes=memory, cpuset_cpus=cpuset)
            answer = cri.ContainerStatusResponse()
            answer.status.id = key
            answer.status.metadata.name = "main"
            answer.status.created_at = time.time_ns()
            answer.status.resources.linux.CopyFrom(limits)
            self._containers[key], self._sandbox_of[key] = answer, pod
        self._notify(key)
        return key

    def start_container(self, key: str, *, cgroup: bool = True) -> None:
        """cgroup: False for one that has none at its path, as in a virtual machine."""
        with self._lock:
            answer = self._containers[key]
            if cgroup:
                self.cgroups.make(self.path(key))
            answer.status.state, answer.status.started_at = cri.CONTAINER_RUNNING, time.time_ns()
        self._notify(key)

    def run(self, pod: str, **options: Any) -> str:
        key = self.create(pod, **options)
        self.start_container(key)
        return key

    def resize(self, key: str, shares: int) -> None:
        with self._lock:
            self._containers[key].status.resources.linux.cpu_shares = shares

    def end(self, key: str) -> None:
        """The container's process ends."""
        with self._lock:
            self.cgroups.remove(self.path(key))
            self._containers[key].status.state = cri.CONTAINER_EXITED
        self._notify(key)

    def end_pause(self, pod: str) -> None:
        """The sandbox's own process ends; its containers run until the kubelet stops them."""
        with self._lock:
            self._sandboxes[pod].state = cri.SANDBOX_NOTREADY
        self._notify(pod)

    def end_pod(self, pod: str) -> None:
        with self._lock:
            for key in [container for container, of in self._sandbox_of.items() if of == pod]:
                self.end(key)
                del self._containers[key], self._sandbox_of[key]
            del self._sandboxes[pod]
        self._notify(pod)

    def path(self, key: str) -> str:
        return f"{self._pod_path(self._sandbox_of[key])}/{self._cgroup_prefix}{key}"

    def _pod_path(self, sandbox: str) -> str:
        return f"/kubepods/burstable/pod{self._sandboxes[sandbox].metadata.uid}"

    # CRI

    def Version(self, _request: cri.VersionRequest, _context: grpc.ServicerContext) -> cri.VersionResponse:  # noqa: N802
        return cri.VersionResponse(runtime_name=self._name, runtime_version=self._version)

    def ListPodSandbox(  # noqa: N802
        self, _request: cri.ListPodSandboxRequest, _context: grpc.ServicerContext
    ) -> cri.ListPodSandboxResponse:
        with self._lock:
            return cri.ListPodSandboxResponse(items=self._sandboxes.values())

    def ListContainers(  # noqa: N802
        self, _request: cri.ListContainersRequest, _context: grpc.ServicerContext
    ) -> cri.ListContainersResponse:
        with self._lock:
            self.calls.append("ListContainers")
            return cri.ListContainersResponse(
                containers=[
                    cri.Container(
                        id=key,
                        pod_sandbox_id=self._sandbox_of[key],
                        metadata=container.status.metadata,
                        state=container.status.state,
                        created_at=container.status.created_at,
                    )
                    for key, container in self._containers.items()
                ]
            )

    def PodSandboxStatus(  # noqa: N802
        self, request: cri.PodSandboxStatusRequest, context: grpc.ServicerContext
    ) -> cri.PodSandboxStatusResponse:
        with self._lock:
            self._fail(request.pod_sandbox_id, context)
            sandbox = self._sandboxes.get(request.pod_sandbox_id)
            if sandbox is None:
                context.abort(grpc.StatusCode.NOT_FOUND, f"no sandbox {request.pod_sandbox_id}")
            assert sandbox is not None
            status = cri.PodSandboxStatus(id=sandbox.id, metadata=sandbox.metadata, state=sandbox.state)
            status.annotations.update(sandbox.annotations)
            return cri.PodSandboxStatusResponse(status=status, info={"info": "{}"})

    def ContainerStatus(  # noqa: N802
        self, request: cri.ContainerStatusRequest, context: grpc.ServicerContext
    ) -> cri.ContainerStatusResponse:
        with self._lock:
            self.calls.append(request.container_id)
            self._fail(request.container_id, context)
            container = self._containers.get(request.container_id)
            if container is None:
                context.abort(grpc.StatusCode.NOT_FOUND, f"no container {request.container_id}")
            assert container is not None
            info = {"pid": 0, "runtimeSpec": {"linux": {"cgroupsPath": self.path(request.container_id)}}}
            answer = cri.ContainerStatusResponse(status=container.status)
            answer.info["info"] = json.dumps(info)
            return answer

    def _fail(self, key: str, context: grpc.ServicerContext) -> None:
        if self.failing[key]:
            self.failing[key] -= 1
            context.abort(grpc.StatusCode.UNKNOWN, f"the state of {key} can't be read just now")

    def GetContainerEvents(  # noqa: N802
        self, _request: cri.GetEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[cri.ContainerEventResponse]:
        """As CRI-O's, the stream of a runtime that has no events ends at once."""
        if not self._events:
            return
        events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        with self._lock:
            self._listeners.append(events)
        context.add_callback(lambda: events.put(ENDED))
        try:
            while (key := events.get()) is not ENDED:
                yield cri.ContainerEventResponse(container_id=key)
        finally:
            with self._lock:
                self._listeners.remove(events)

    def _notify(self, key: str) -> None:
        with self._lock:
            for listener in () if self.dropped else self._listeners:
                listener.put(key)
