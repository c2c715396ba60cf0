"""From the runtime's messages about a pod and a container to what placement asks for: pure functions over NRI's
messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from enforcer.hook.ownership.checkpoint import Grant
from numakin.placement.decide.decide import MemoryPolicy
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand, from_cgroup
from numakin.placement.model.errors import PlacementError
from numakin.placement.model.workload import workload_of
from numakin.wire import nri_pb2 as nri

MARK = "pinned.numakin.io"
"""Annotation that a container carries when we pinned it at its creation: how a later start tells its own work from
another owner's.
"""


WITHIN = "within.numakin.io"
"""Annotation that a container carries which we narrow within another owner's cpuset: those CPUs."""

UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
"""Of hugepages' sizes in CRI and OCI (`2MB`), which take a kilobyte for 1,024 bytes."""

_PAGE_SIZE = re.compile(r"([1-9]\d{0,6})(KB|MB|GB)")


@dataclass(frozen=True, slots=True)
class Claim:
    """The cpuset that another owner asked for in the runtime's request."""

    cpus: str
    mems: str

    @property
    def cpuset(self) -> CpuSet:
        """Its CPUs; none where they are not a list of ids."""
        cpuset = cpuset_of(self.cpus, self.mems)
        return cpuset[0] if cpuset is not None else CpuSet()


UNKNOWN = Claim("", "")
"""Of an owner whose cpuset is not known yet."""


def demand_of(resources: nri.LinuxResources) -> Demand:
    """An estimate from the cgroup's settings: NRI does not pass requests on. One value for all replicas."""
    return _demand_of(resources.SerializeToString())


@lru_cache(maxsize=1024)
def _demand_of(encoded: bytes) -> Demand:
    resources = nri.LinuxResources.FromString(encoded)
    cpu, memory = resources.cpu, resources.memory
    return from_cgroup(
        shares=cpu.shares.value if cpu.HasField("shares") else None,
        quota=cpu.quota.value if cpu.HasField("quota") else None,
        period=cpu.period.value if cpu.HasField("period") else None,
        memory_limit=memory.limit.value if memory.HasField("limit") else None,
        hugepages=_hugepages(resources),
    )


def _hugepages(resources: nri.LinuxResources) -> dict[int, int]:
    """Bytes by page size. The kubelet names every size that the machine has; a limit of 0 asks for none."""
    limits = {}
    for hugepage_limit in resources.hugepage_limits:
        size = _PAGE_SIZE.fullmatch(hugepage_limit.page_size)
        if size is not None and hugepage_limit.limit:
            limits[int(size[1]) * UNITS[size[2]]] = hugepage_limit.limit
    return limits


def workload(pod: nri.PodSandbox) -> str:
    """NAMESPACE/KIND/NAME of the controller that owns the pod, from its labels."""
    return workload_of(pod.namespace, pod.name, pod.labels)


def devices_of(container: nri.Container, node_of: Callable[[str, int, int], int | None]) -> tuple[NumaSet, ...]:
    """For each device that the container gets, the NUMA node it is near to; devices without one have no say."""
    nodes = (node_of(device.type, device.major, device.minor) for device in container.linux.devices)
    return tuple(NumaSet.of((node,)) for node in nodes if node is not None)


def claim_of(container: nri.Container) -> Claim | None:
    """The cpuset that the kubelet or an earlier plugin put into the request; None when there is none."""
    cpu = container.linux.resources.cpu
    return Claim(cpu.cpus, cpu.mems) if cpu.cpus or cpu.mems else None


def marked(pod: nri.PodSandbox, container: nri.Container) -> Grant | None:
    """What the container was given, by our mark; None without one, and where its own pod's author wrote it.

    An older enforcer's mark, or one that can't be read, only says that it was us.
    """
    text = container.annotations.get(MARK)
    if text is None or MARK in pod.annotations:
        return None
    fields = dict(field.partition("=")[::2] for field in text.split())
    cpuset = cpuset_of(fields.get("cpus", ""), fields.get("mems", ""))
    own = cpuset_of(fields.get("exclusive", ""), fields.get("homes", ""))
    if cpuset is None or own is None:
        return Grant(pod.uid)
    keys = {"pod": pod.uid, "container": f"{pod.uid}/{container.name}"}
    return Grant(
        pod.uid,
        own[1],
        *cpuset,
        own[0] & cpuset[0],
        open="open" in fields,
        stable="stable" in fields,
        reservation=keys.get(fields.get("scope", ""), ""),
    )


def within(pod: nri.PodSandbox, container: nri.Container) -> CpuSet:
    """The CPUs that another owner gave a container which we have narrowed; none where its pod's author wrote that."""
    text = "" if WITHIN in pod.annotations else container.annotations.get(WITHIN, "")
    return Claim(text, "").cpuset


def within_mark(claim: Claim) -> nri.ContainerAdjustment:
    """Sets no cpuset, which the runtime takes from one plugin alone."""
    return nri.ContainerAdjustment(annotations={WITHIN: claim.cpus})


def cpuset_of(cpus: str, mems: str) -> tuple[CpuSet, NumaSet] | None:
    """Both lists parsed; None when either is not a list of ids."""
    try:
        return CpuSet.parse(cpus), NumaSet.parse(mems)
    except PlacementError:
        return None


def runtime_cpuset(container: nri.Container) -> tuple[CpuSet, NumaSet]:
    """As the runtime's message has it; empty where it names none."""
    cpu = container.linux.resources.cpu
    return cpuset_of(cpu.cpus, cpu.mems) or (CpuSet(), NumaSet())


def adjustment(
    cpus: CpuSet, mems: NumaSet, exclusive: CpuSet, homes: NumaSet, kind: str = ""
) -> nri.ContainerAdjustment:
    """The answer to CreateContainer; an empty set is left as it is. The mark says the rest. kind: whose its reservation
    is (`scope=pod` or `scope=container`), and `open` or `stable`, as an allocation may be.
    """
    return nri.ContainerAdjustment.FromString(_adjustment(cpus, mems, exclusive, homes, kind))


@lru_cache(maxsize=64)
def _adjustment(cpus: CpuSet, mems: NumaSet, exclusive: CpuSet, homes: NumaSet, kind: str) -> bytes:
    """Encoded: members that share a pool get the same, and a message could be changed by who is handed it."""
    cpu = nri.LinuxCPU(cpus=str(cpus), mems=str(mems))
    mark = f"cpus={cpu.cpus} mems={cpu.mems} exclusive={exclusive} homes={homes} {kind}".rstrip()
    linux = nri.LinuxContainerAdjustment(resources=nri.LinuxResources(cpu=cpu))
    return nri.ContainerAdjustment(annotations={MARK: mark}, linux=linux).SerializeToString()


def set_memory_policy(adjust: nri.ContainerAdjustment, policy: MemoryPolicy) -> None:
    """For a runtime that knows NRI 0.12's memory policy; an older one ignores the field."""
    message = nri.LinuxMemoryPolicy(mode=policy.mode, nodes=str(policy.numa_nodes))
    adjust.linux.memory_policy.CopyFrom(message)


def update(container: str, cpus: CpuSet, mems: NumaSet) -> nri.ContainerUpdate:
    """A running container's new cpuset. ignore_failure: a container that is just ending must not fail the request for
    another one.
    """
    change = nri.ContainerUpdate(container_id=container, ignore_failure=True)
    change.linux.resources.cpu.cpus = str(cpus)
    change.linux.resources.cpu.mems = str(mems)
    return change


def merged(updates: Iterable[nri.ContainerUpdate]) -> list[nri.ContainerUpdate]:
    """One for each container, a later one wins: a runtime takes a second one for a conflict."""
    by_container: dict[str, nri.ContainerUpdate] = {}
    for change in updates:
        by_container.setdefault(change.container_id, nri.ContainerUpdate()).MergeFrom(change)
    return list(by_container.values())
