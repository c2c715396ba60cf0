"""One node for tests: an agent, the cgroups that the runtime would have written, and pods to be created."""

import pytest

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.local.learned import kin_table
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine, NumaNode, uniform_distances
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb

GIB = 1 << 30


def two_numa_nodes() -> Machine:
    far = uniform_distances((0, 1))
    cores = tuple(CpuSet.of((cpu, cpu + 8)) for cpu in range(8))
    return Machine(
        (
            NumaNode(0, CpuSet.parse("0-3,8-11"), 16 * GIB, far[0]),
            NumaNode(1, CpuSet.parse("4-7,12-15"), 16 * GIB, far[1]),
        ),
        cores=cores,
    )


class World:
    """One node: its agent, and the cgroups that the runtime would have written."""

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or two_numa_nodes()
        self.cgroups: dict[str, tuple[CpuSet, NumaSet]] = {}
        self.memory: dict[str, dict[int, int]] = {}
        """Bytes on each NUMA node, by a container's cgroup."""
        self.used: dict[int, int] | None = {}
        """Bytes of each NUMA node's memory that are not free; None: that is not known."""
        self.pod_cgroups: set[str] = set()
        self.nominations = Nominations()
        self.limited: bool | None = True
        """Whether every container of a pod has a memory limit, as its pods' cgroups show it; None: they are not seen."""
        self.policies: dict[int, str | None] = {}
        """The memory policies of processes."""
        self.takes_policies = True
        """Whether the kernel knows the memory policies that are asked for."""
        self.widest: tuple[CpuSet, NumaSet] | None = None
        """What each container's cgroup may have at most."""
        self.agent = self.started()

    def started(self) -> Agent:
        """An agent that knows nothing yet, as after a restart."""
        self.agent = Agent(self.facts(), self.nominations)
        return self.agent

    def facts(self) -> NodeFacts:
        return NodeFacts(
            self.machine,
            CpuSet(),
            self.cgroups.get,
            self.free_memory,
            limited=lambda _cgroups_path, _pod: self.limited,
            memory_policy=self.policies.get,
            memory_policies=self.takes_policies,
            memory_now=self.memory.get,
            widest_cpuset=lambda _cgroups_path: self.widest,
            pod_cgroup=lambda _cgroups_path, pod: pod in self.pod_cgroups,
        )

    def free_memory(self) -> dict[int, int]:
        used = self.used
        return {} if used is None else {it.id: it.memory - used.get(it.id, 0) for it in self.machine.numa_nodes}

    def create(self, pod: nri.PodSandbox, container: nri.Container, other: str = ""):
        """The container is created, as the runtime does it. other: the CPUs that a plugin gives it that is asked after
        us.
        """
        adjust = self.fail(pod, container)
        shown = nri.Container()
        shown.CopyFrom(container)
        cpu = adjust.linux.resources.cpu if adjust is not None else nri.LinuxCPU()
        shown.linux.resources.cpu.MergeFrom(nri.LinuxCPU(cpus=other or cpu.cpus, mems=cpu.mems))
        self.agent.post_create_container(pod, shown)
        return adjust

    def start(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        self.agent.start_container(pod, container)
        self.apply(self.agent.post_start_container(pod, container))

    def fail(self, pod: nri.PodSandbox, container: nri.Container):
        """Its creation is answered, and comes to nothing."""
        adjust, updates = self.agent.create_container(pod, container)
        cpus, mems = self.machine.all_cpus, self.machine.all_mems
        if adjust is not None:
            cpu = adjust.linux.resources.cpu
            cpus = CpuSet.parse(cpu.cpus) or cpus
            mems = NumaSet.parse(cpu.mems) or mems
            container.annotations.update(adjust.annotations)
        self.cgroups[container.linux.cgroups_path] = (cpus, mems)
        self.apply(updates)
        return adjust

    def apply(self, updates) -> None:
        for update in updates:
            path = path_of(update.container_id)
            cpus, mems = self.cgroups[path]
            cpu = update.linux.resources.cpu
            self.cgroups[path] = (CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems)

    @property
    def last(self) -> pb.DecisionRecord:
        """The latest decision, as it would be reported."""
        records = self.agent.records.take()
        self._last = records[-1] if records else self._last
        return self._last

    def cpus(self, name: str) -> str:
        return str(self.cgroups[path_of(name)][0])

    def mems(self, name: str) -> str:
        return str(self.cgroups[path_of(name)][1])


@pytest.fixture
def world() -> World:
    return World()


def pod(name: str, **annotations: str) -> nri.PodSandbox:
    return nri.PodSandbox(
        id=f"sandbox-{name}",
        name=name,
        uid=f"uid-{name}",
        namespace="shop",
        annotations={
            key.replace("_", ".", 1) + ".numakin.io" if "." not in key else key: value
            for key, value in annotations.items()
        },
    )


def path_of(container: str) -> str:
    return f"/kubepods/{container}"


def container(name: str, cpus: float = 1, memory: int = GIB, *, claim: str = "", created_at: int = 0) -> nri.Container:
    made = nri.Container(
        id=name, pod_sandbox_id=f"sandbox-{name}", name="app", state=nri.CONTAINER_RUNNING, created_at=created_at
    )
    made.linux.cgroups_path = path_of(name)
    made.linux.resources.cpu.shares.value = int(cpus * 1024)
    made.linux.resources.cpu.cpus = claim
    made.linux.resources.memory.limit.value = memory
    return made


def of_pod(sandbox: nri.PodSandbox, name: str, cpus: int) -> nri.Container:
    """A container that asks for nothing itself, as the kubelet makes it: with its pod's limit."""
    made = container(f"{sandbox.name}-{name}", cpus)
    made.name, made.pod_sandbox_id = name, sandbox.id
    made.linux.resources.CopyFrom(limited(cpus))
    return made


def limited(cpus: int) -> nri.LinuxResources:
    """Of a pod, or of a container that was given its pod's: as many CPUs requested as its limit."""
    made = nri.LinuxResources()
    made.cpu.shares.value, made.cpu.period.value, made.cpu.quota.value = 1024 * cpus, 100_000, 100_000 * cpus
    made.memory.limit.value = GIB
    return made


def member(name: str, group: str = "web", **more: str) -> nri.PodSandbox:
    return pod(name, group=group, **more)


def learned(world: World, key: str, weights: dict[str, float]) -> None:
    """What the observer would hand over."""
    world.agent.ledger.learned.weighed(kin_table({key: weights}))
