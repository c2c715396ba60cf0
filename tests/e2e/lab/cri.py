"""A small kubelet: pods and containers over CRI on a real runtime's socket."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from enforcer.machine.cgroup import MEMORY_LIMIT_V1, MEMORY_LIMIT_V2, CgroupTree
from enforcer.machine.cgroup_path import SLICE
from numakin.wire import cri_pb2 as cri
from numakin.wire import cri_pb2_grpc
from tests.e2e.lab import image

SLEEP = ("/bin/busybox", "sleep", "2147483647")
CALL_S = 120.0  # emulation is slow, and StopContainer waits

# There is no CNI but in the emulated machine, so pods live in the node's network unless told otherwise.
NODE_NETWORK = cri.NamespaceOption(network=cri.NODE, pid=cri.CONTAINER, ipc=cri.POD)
POD_NETWORK = cri.NamespaceOption(network=cri.POD, pid=cri.CONTAINER, ipc=cri.POD)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod sandbox, with what made it: CreateContainer wants that again."""

    id: str
    config: cri.PodSandboxConfig

    @property
    def uid(self) -> str:
        return self.config.metadata.uid


class Kubelet:
    """Plays the kubelet towards the runtime at `socket`; its pods' cgroups are below `cgroup_parent`, which is a slice where
    systemd has the cgroups. handler: of pods without a RuntimeClass; empty: the runtime's own.
    """

    def __init__(self, socket: Path, cgroup_parent: str, handler: str = "") -> None:
        self.cgroup_parent = cgroup_parent
        self._handler = handler
        options = [("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0)]
        self._channel = grpc.insecure_channel(f"unix://{socket.resolve()}", options=options)
        self._runtime = cri_pb2_grpc.RuntimeServiceStub(self._channel)
        self._images = cri_pb2_grpc.ImageServiceStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def name(self) -> str:
        """Such as "containerd"; waits until the runtime answers."""
        answer = self._runtime.Version(cri.VersionRequest(), timeout=CALL_S, wait_for_ready=True)
        return str(answer.runtime_name)

    def version(self) -> str:
        """Such as "1.7.24"; also waits until the runtime answers."""
        answer = self._runtime.Version(cri.VersionRequest(), timeout=CALL_S, wait_for_ready=True)
        return str(answer.runtime_version)

    def initialized(self) -> bool:
        """Whether it answers; waits until it is there. A runtime may take calls and refuse all of them at first."""
        try:
            self._runtime.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=CALL_S, wait_for_ready=True)
        except grpc.RpcError as error:
            if "not initialized" in error.details():
                return False
            raise
        return True

    def has_image(self, name: str) -> bool:
        """The runtime learns of an image some time after it was imported."""
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=name))
        return bool(self._images.ImageStatus(request, timeout=CALL_S).HasField("image"))

    def run_pod(
        self,
        name: str,
        *,
        namespace: str = "default",
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        namespaces: cri.NamespaceOption = NODE_NETWORK,
        memory_limit: int = 0,
        handler: str = "",
        resources: cri.LinuxContainerResources | None = None,
        host_ports: Mapping[int, int] | None = None,
    ) -> Pod:
        """A pod sandbox without containers. handler: of its RuntimeClass, of those that the runtime has. uid: made up
        where not given. host_ports: TCP port of the node -> port of the pod. memory_limit: the sum of its containers', in bytes, where every one of them has one: then the
        kubelet limits the pod's own cgroup, too. resources: the pod's own, or those sums.
        """
        uid = uid or str(uuid.uuid4())
        config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name=name, uid=uid, namespace=namespace),
            log_directory=f"/var/log/pods/{namespace}_{name}_{uid}",
            labels=_labels(name, namespace, uid) | dict(labels or {}),
            annotations=annotations or {},
            port_mappings=[
                cri.PortMapping(host_port=outside, container_port=inside)
                for outside, inside in (host_ports or {}).items()
            ],
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=self.pod_cgroup(uid),
                security_context=cri.LinuxSandboxSecurityContext(namespace_options=namespaces),
                resources=resources,
            ),
        )
        request = cri.RunPodSandboxRequest(config=config, runtime_handler=handler or self._handler)
        answer = self._runtime.RunPodSandbox(request, timeout=CALL_S)
        if memory_limit:
            _limit_memory(config.linux.cgroup_parent, memory_limit)
        return Pod(answer.pod_sandbox_id, config)

    def pod_cgroup(self, uid: str) -> str:
        """As the kubelet names it, by either cgroup driver."""
        if self.cgroup_parent.endswith(SLICE):
            return f"/{self.cgroup_parent}/{self.cgroup_parent.removesuffix(SLICE)}-pod{uid.replace('-', '_')}{SLICE}"
        return f"{self.cgroup_parent}/pod{uid}"

    def create(
        self,
        pod: Pod,
        name: str = "main",
        command: Sequence[str] = SLEEP,
        *,
        resources: cri.LinuxContainerResources | None = None,
        environment: Mapping[str, str] | None = None,
        mounts: Mapping[str, str] | None = None,
        attempt: int = 0,
        seccomp: Path | None = None,
    ) -> str:
        """A container, not started; its id.

        mounts: folder in the container -> folder of the node. attempt: counts the restarts of a name in a pod. seccomp:
        the profile that it runs under, without a way to more privileges; None: under none.
        """
        meta = pod.config.metadata
        confined = seccomp and cri.SecurityProfile(
            profile_type=cri.SecurityProfile.Localhost, localhost_ref=str(seccomp)
        )
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image=image.NAME, user_specified_image=image.NAME),
            command=command,
            envs=[cri.KeyValue(key=key, value=value) for key, value in (environment or {}).items()],
            mounts=[cri.Mount(container_path=inside, host_path=of) for inside, of in (mounts or {}).items()],
            labels=_labels(meta.name, meta.namespace, meta.uid) | {"io.kubernetes.container.name": name},
            log_path=f"{name}.log",
            linux=cri.LinuxContainerConfig(
                resources=resources or cri.LinuxContainerResources(cpu_shares=102),
                security_context=cri.LinuxContainerSecurityContext(
                    namespace_options=pod.config.linux.security_context.namespace_options,
                    no_new_privs=confined is not None,
                    seccomp=confined,
                ),
            ),
        )
        request = cri.CreateContainerRequest(pod_sandbox_id=pod.id, config=config, sandbox_config=pod.config)
        return str(self._runtime.CreateContainer(request, timeout=CALL_S).container_id)

    def start(self, container: str) -> None:
        self._runtime.StartContainer(cri.StartContainerRequest(container_id=container), timeout=CALL_S)

    def run(
        self,
        pod: Pod,
        name: str = "main",
        command: Sequence[str] = SLEEP,
        *,
        resources: cri.LinuxContainerResources | None = None,
        environment: Mapping[str, str] | None = None,
        mounts: Mapping[str, str] | None = None,
        attempt: int = 0,
    ) -> str:
        """A container, started; its id."""
        container = self.create(
            pod, name, command, resources=resources, environment=environment, mounts=mounts, attempt=attempt
        )
        self.start(container)
        return container

    def stop(self, container: str) -> None:
        self._runtime.StopContainer(cri.StopContainerRequest(container_id=container), timeout=CALL_S)

    def remove(self, container: str) -> None:
        self._runtime.RemoveContainer(cri.RemoveContainerRequest(container_id=container), timeout=CALL_S)

    def end_pod(self, pod: str) -> None:
        """Stops and removes a pod sandbox and its containers, by id."""
        for container in self.containers():
            if container.pod_sandbox_id == pod:
                self.stop(container.id)
                self.remove(container.id)
        self._runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod), timeout=CALL_S)
        self._runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod), timeout=CALL_S)

    def end_all_pods(self) -> None:
        for pod in self._runtime.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=CALL_S).items:
            self.end_pod(pod.id)

    def containers(self) -> Sequence[cri.Container]:
        answer = self._runtime.ListContainers(cri.ListContainersRequest(), timeout=CALL_S)
        return list(answer.containers)

    def update(self, container: str, resources: cri.LinuxContainerResources) -> None:
        """What the kubelet does when a pod is resized in place."""
        request = cri.UpdateContainerResourcesRequest(container_id=container, linux=resources)
        self._runtime.UpdateContainerResources(request, timeout=CALL_S)

    def address(self, pod: Pod) -> str:
        """The pod's IP address; empty for one in the node's network."""
        return str(self.pod_status(pod).status.network.ip)

    def pod_status(self, pod: Pod) -> cri.PodSandboxStatusResponse:
        """Verbose."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=pod.id, verbose=True)
        return self._runtime.PodSandboxStatus(request, timeout=CALL_S)

    def container_status(self, container: str) -> cri.ContainerStatusResponse:
        """Verbose."""
        request = cri.ContainerStatusRequest(container_id=container, verbose=True)
        return self._runtime.ContainerStatus(request, timeout=CALL_S)

    def pid(self, container: str) -> int:
        """The pid of a container's first process; 0 when it has none."""
        return int(self._info(container).get("pid", 0))

    def process(self, container: str) -> tuple[int, str]:
        """As `pid`, and the path of its cgroup as the runtime gives it to its OCI runtime: in its cgroup driver's syntax."""
        info = self._info(container)
        return int(info.get("pid", 0)), str(info["runtimeSpec"]["linux"]["cgroupsPath"])

    def _info(self, container: str) -> dict[str, Any]:
        info: dict[str, Any] = json.loads(self.container_status(container).info["info"])
        return info


def _limit_memory(cgroups_path: str, limit: int) -> None:
    tree = CgroupTree.discover()
    folder = tree.folder(cgroups_path, "memory")
    if folder is None:
        raise LookupError(f"the runtime made no cgroup {cgroups_path}")
    (folder / (MEMORY_LIMIT_V1 if tree.version("memory") == 1 else MEMORY_LIMIT_V2)).write_text(str(limit))


def _labels(pod: str, namespace: str, uid: str) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": pod,
        "io.kubernetes.pod.namespace": namespace,
        "io.kubernetes.pod.uid": uid,
    }
