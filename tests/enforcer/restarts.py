"""A node whose enforcer may end at any moment: an agent with its recorder, the cgroups, and a runtime's list, which
outlive it.
"""

from __future__ import annotations

from pathlib import Path

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.ownership.recorder import Recorder
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import Machine
from proto import nri_pb2 as nri

GIB = 1 << 30


class Restarting:
    """`agent` is None while there is no enforcer. The runtime's updates are carried out as it does: an empty list
    changes nothing, a container that is not there is passed over.
    """

    def __init__(self, machine: Machine, run_dir: Path) -> None:
        self.machine, self.run_dir = machine, run_dir
        self.spare = run_dir.with_name(f"{run_dir.name}.memory") / "spare.json"
        self.spare.parent.mkdir()
        self.cgroups: dict[str, tuple[CpuSet, NumaSet]] = {}
        self.running: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}
        self.agent: Agent | None = None
        self.start()

    def start(self, *, joined: bool = True) -> None:
        """A new process, and the runtime's Synchronize, unless the runtime is away."""
        node = NodeFacts(
            self.machine,
            CpuSet(),
            self.cgroups.get,
            lambda: {numa_node.id: numa_node.memory for numa_node in self.machine.numa_nodes},
        )
        self.agent = Agent(node, Nominations())
        self.recorder = Recorder(self.run_dir, self.spare, self.agent, lambda _write: None)
        self.recorder.restore()
        if joined:
            self.synchronize()

    def kill(self) -> None:
        """What has not been written down is lost."""
        self.agent = None

    def fill(self) -> None:
        """Nothing can be written to the run folder: a folder is in the draft's way."""
        (self.run_dir / ".allocations.json.draft").mkdir(exist_ok=True)

    def empty(self) -> None:
        (self.run_dir / ".allocations.json.draft").rmdir()

    def synchronize(self) -> None:
        assert self.agent is not None
        updates = self.agent.synchronize(
            [pod for pod, _ in self.running.values()], [container for _, container in self.running.values()]
        )
        self.recorder.write()
        self.apply(updates)

    def create(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """With whoever is there; nothing is written down yet."""
        claim = container.linux.resources.cpu
        cpus = CpuSet.parse(claim.cpus) or self.machine.cpus
        mems = NumaSet.parse(claim.mems) or self.machine.mems
        updates: list[nri.ContainerUpdate] = []
        if self.agent is not None:
            adjust, updates = self.agent.create_container(pod, container)
            if adjust is not None:
                cpu = adjust.linux.resources.cpu
                cpus, mems = CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems
                container.annotations.update(adjust.annotations)
        self.cgroups[container.linux.cgroups_path] = cpus, mems
        self.running[container.id] = pod, container
        self.apply(updates)

    def stop(self, container: str, *, lost: bool = False) -> None:
        """lost: the runtime has hung up by the time of our answer, and carries out nothing of it."""
        pod, ended = self.running.pop(container)
        del self.cgroups[ended.linux.cgroups_path]
        if self.agent is not None:
            updates = self.agent.stop_container(pod, ended)
            if lost:
                return
            self.apply(updates)
            self.agent.stop_pod_sandbox(pod)

    def release(self) -> None:
        assert self.agent is not None
        updates = self.agent.release()
        self.recorder.write()
        self.apply(updates)

    def apply(self, updates: list[nri.ContainerUpdate]) -> None:
        assert len({update.container_id for update in updates}) == len(updates), "one update for each container"
        for update in updates:
            if update.container_id in self.running:
                path, cpu = path_of(update.container_id), update.linux.resources.cpu
                cpus, mems = self.cgroups[path]
                self.cgroups[path] = CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems

    def cpus(self, container: str) -> CpuSet:
        return self.cgroups[path_of(container)][0]


def path_of(container: str) -> str:
    return f"/kubepods/{container}"


def pod(name: str, **annotations: str) -> nri.PodSandbox:
    keys = {f"{key}.numakin.io": value for key, value in annotations.items()}
    return nri.PodSandbox(id=f"sandbox-{name}", name=name, uid=f"uid-{name}", namespace="shop", annotations=keys)


def container(name: str, cpus: float = 1, claim: str = "", created_at: int = 0) -> nri.Container:
    made = nri.Container(
        id=name, pod_sandbox_id=f"sandbox-{name}", name="app", state=nri.CONTAINER_RUNNING, created_at=created_at
    )
    made.linux.cgroups_path = path_of(name)
    made.linux.resources.cpu.shares.value = int(cpus * 1024)
    made.linux.resources.cpu.cpus = claim
    made.linux.resources.memory.limit.value = GIB
    return made


def ours(node: Restarting, name: str) -> bool:
    allocation = node.agent.occupancy.allocations.get(name)
    return allocation is not None and not allocation.externally_managed and allocation.reservation != name
