"""What the runtime knows of its pods and containers, and the messages about them."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lab.standins.runtime.manners import CONTAINERD, Manner
from numakin.wire import nri_pb2 as nri

# The kubelet's cgroup parents by QoS class, cgroupfs driver.
CGROUP_PARENTS = {
    "guaranteed": "/kubepods/pod{uid}",
    "burstable": "/kubepods/burstable/pod{uid}",
    "besteffort": "/kubepods/besteffort/pod{uid}",
}


def new_id() -> str:
    """As containerd makes them: 64 hexadecimal digits."""
    return secrets.token_hex(32)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod sandbox. cpu_request, cpu_limit, memory_limit: what the kubelet sends of the pod when it makes the sandbox,
    the pod's own requests and limits (CPUs, bytes), else the sums of those of its containers that are set; a later
    resize of a container changes nothing here.
    recovered: the runtime has restarted since it made the sandbox. manner: the runtime's.
    """

    name: str
    namespace: str
    uid: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    qos: str = "burstable"
    host_network: bool = False
    id: str = field(default_factory=new_id)
    stopped: bool = False
    recovered: bool = False
    cpu_request: float = 0.0
    memory_limit: int = 0
    cpu_limit: float = 0.0
    manner: Manner = CONTAINERD

    @property
    def cgroup_parent(self) -> str:
        return CGROUP_PARENTS[self.qos].format(uid=self.uid)

    def message(self) -> nri.PodSandbox:
        kinds = [*self.manner.namespaces]
        if not self.host_network or self.manner.lists_host_network:
            kinds.append("network")
        return nri.PodSandbox(
            id=self.id,
            name=self.name,
            uid=self.uid,
            namespace=self.namespace,
            labels={
                **self.labels,
                "io.kubernetes.pod.name": self.name,
                "io.kubernetes.pod.namespace": self.namespace,
                "io.kubernetes.pod.uid": self.uid,
            },
            annotations=self.annotations,
            linux=nri.LinuxPodSandbox(
                cgroup_parent=self.cgroup_parent,
                cgroups_path=f"{self.cgroup_parent}/{self.id}",
                namespaces=[nri.LinuxNamespace(type=kind) for kind in kinds],
                resources=nri.LinuxResources(cpu=nri.LinuxCPU(shares=nri.OptionalUInt64(value=2))),
                pod_resources=pod_resources_of(self.cpu_request, self.cpu_limit, self.memory_limit),
            ),
        )

    def stripped_message(self) -> nri.PodSandbox:
        """As it comes in REMOVE_POD_SANDBOX: no linux, only the user's annotations."""
        message = self.message()
        message.linux.Clear()
        return message


@dataclass(frozen=True, slots=True)
class Container:
    """A container; `resources` is what its cgroup would hold, `cpus` and `mems` "" where they were never set."""

    name: str
    pod: Pod
    resources: nri.LinuxResources
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    id: str = field(default_factory=new_id)
    state: nri.ContainerState = nri.CONTAINER_UNKNOWN
    pid: int = 0

    @property
    def cpus(self) -> str:
        return str(self.resources.cpu.cpus)

    @property
    def mems(self) -> str:
        return str(self.resources.cpu.mems)

    @property
    def cgroups_path(self) -> str:
        return f"{self.pod.cgroup_parent}/{self.pod.manner.cgroup_prefix}{self.id}"

    @property
    def running(self) -> bool:
        return bool(self.state == nri.CONTAINER_RUNNING)

    def message(self) -> nri.Container:
        return nri.Container(
            id=self.id,
            pod_sandbox_id=self.pod.id,
            name=self.name,
            state=self.state,
            labels={
                "io.kubernetes.container.name": self.name,
                "io.kubernetes.pod.name": self.pod.name,
                "io.kubernetes.pod.namespace": self.pod.namespace,
                "io.kubernetes.pod.uid": self.pod.uid,
            },
            annotations={**(self.pod.annotations if self.pod.manner.annotates_containers else {}), **self.annotations},
            args=["/" + self.name],
            env=self.env,
            linux=nri.LinuxContainer(resources=self.resources, cgroups_path=self.cgroups_path),
            pid=self.pid,
        )

    def with_resources(self, change: nri.LinuxResources) -> "Container":
        """What is set in `change` replaces what is here; an empty cpus or mems changes nothing, as in NRI."""
        merged = nri.LinuxResources()
        merged.CopyFrom(self.resources)
        merged.MergeFrom(change)
        return replace(self, resources=merged)


def pod_resources_of(cpu_request: float, cpu_limit: float, memory_limit: int) -> nri.LinuxResources:
    """As `resources_of`, of a sandbox: a quota that is not set is a message without a value there, as measured."""
    resources = resources_of(cpu_request, cpu_limit, memory_limit)
    resources.cpu.quota.SetInParent()
    return resources


def resources_of(cpu_request: float, cpu_limit: float, memory_limit: int) -> nri.LinuxResources:
    """As the kubelet makes them of a container's requests (CPUs) and limits (CPUs, bytes); 0 means none."""
    resources = nri.LinuxResources(
        cpu=nri.LinuxCPU(
            shares=nri.OptionalUInt64(value=max(2, int((cpu_request or cpu_limit) * 1024))),
            period=nri.OptionalUInt64(value=100_000),
        )
    )
    if cpu_limit:
        resources.cpu.quota.value = int(cpu_limit * 100_000)
    if memory_limit:
        resources.memory.limit.value = memory_limit
    return resources
