"""One simulated node: a runtime that only keeps records, and the enforcer's own agent, outbox and mirror."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.cluster.nodes.audit import Confined, Overcommitment, overcommitments
from benchmarks.cluster.nodes.population import NodeSpec
from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.outbox import Outbox
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from lab.standins.runtime.records import Container, Pod, resources_of
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.process.version import VERSION
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb

RESERVE = 16
"""A sixteenth of a NUMA node's memory is the kernel's, and never free."""


@dataclass(frozen=True, slots=True)
class Order:
    """A bound pod for a node's kubelet to run. bound_at: seconds, monotonic, on the clock of this machine."""

    node: str
    uid: str
    namespace: str
    name: str
    container: str
    annotations: dict[str, str]
    labels: dict[str, str]
    cpu_milli: int
    memory: int
    ip: str
    bound_at: float


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a pod's container may run, and what became of its nomination.

    numa_nodes: in the kernel's list format. waited: seconds from the binding to the nomination; None: none came in
    time. kin: how many peers the nomination named with a weight of their own.
    """

    uid: str
    node: str
    numa_nodes: str
    outcome: str
    waited: float | None
    kin: int


@dataclass(slots=True)
class Running:
    """A container as its runtime and its cgroup have it."""

    pod: nri.PodSandbox
    container: nri.Container
    cpu_milli: int
    memory: int
    cpus: CpuSet
    mems: NumaSet


class SimulatedNode:
    """Not thread-safe: it belongs to the fleet's loop. agent, mirror, nominations: of the enforcer that runs now.

    errors: what the enforcer raised where it had to answer.
    """

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.running: dict[str, Running] = {}
        self.errors: list[str] = []
        self._hooks = self._created = 0
        for other in spec.others:
            self._start_other(other.uid, spec.machine.node(other.numa_node).cpus, other.cpu_milli)
        self.start_enforcer()

    def start_enforcer(self) -> None:
        """A new hook and a new observer: all that they know comes from the runtime and the cgroups."""
        self._hooks += 1
        machine = self.spec.machine
        self.nominations = Nominations()
        node = NodeFacts(machine, CpuSet(), self._cpuset_now, self._free_memory, limited=_limited)
        self.agent = Agent(node, self.nominations)
        self.outbox = Outbox(self.agent)
        self.mirror = Mirror()
        self.backlog = ReportBacklog(self.mirror)
        session = f"{self.spec.name}-{self._hooks}"
        self.mirror.started(
            local.Start(node=self.spec.name, version=VERSION, session=session, machine=convert.machine_to(machine))
        )
        sandboxes = {running.pod.id: running.pod for running in self.running.values()}
        self._set(
            self.agent.synchronize(list(sandboxes.values()), [running.container for running in self.running.values()])
        )
        self.outbox.registered = True
        self._notify(self.outbox.whole())

    def create(self, order: Order, nominated_at: float | None) -> Landing:
        """What the kubelet has the runtime do; the plugin's answer is set in the cgroup."""
        running = self._record(order)
        outcomes = self.agent.records.counts.copy()
        adjustment, updates = self._answered(running)
        if adjustment is not None:
            running.container.annotations.update(adjustment.annotations)
            self._pin(running, adjustment.linux.resources.cpu)
        running.container.state = nri.CONTAINER_RUNNING
        self.running[running.container.id] = running
        self._set(updates)
        self.news()
        outcome = next(
            (str(counted) for counted in OUTCOMES if self.agent.records.counts[counted] > outcomes[counted]), "failed"
        )
        expect = self.nominations.get(order.uid)
        waited = nominated_at - order.bound_at if nominated_at is not None else None
        return Landing(
            order.uid,
            self.spec.name,
            self._homes(running),
            outcome,
            waited,
            len(expect.kin) if expect is not None else 0,
        )

    def stop(self, uid: str) -> None:
        for running in [running for running in self.running.values() if running.pod.uid == uid]:
            del self.running[running.container.id]
            self._set(self.agent.stop_container(running.pod, running.container))
            self.agent.stop_pod_sandbox(running.pod)
        self.news()

    def expect(self, message: pb.Expect) -> None:
        self.agent.expect(message)
        self.news()

    def news(self) -> None:
        self._notify(self.outbox.changes())

    def places(self) -> dict[str, str]:
        """NUMA nodes by the uid of each pod, by the cgroups' cpusets."""
        return {running.pod.uid: self._homes(running) for running in self.running.values()}

    def audit(self) -> list[Overcommitment]:
        return overcommitments(self.spec.name, self.spec.machine, self._confined())

    def could_hold(self, cpu_milli: int, memory: int) -> list[int]:
        """The NUMA nodes that one more container could be confined to, and nothing would be over-committed."""
        machine, rows = self.spec.machine, self._confined()
        return [
            cpu_node
            for cpu_node in machine.cpu_nodes
            if not overcommitments(self.spec.name, machine, [*rows, Confined(1 << cpu_node, cpu_milli, memory)])
        ]

    def _confined(self) -> list[Confined]:
        machine = self.spec.machine
        return [
            Confined(machine.nodes_of(running.cpus).mask, running.cpu_milli, running.memory)
            for running in self.running.values()
        ]

    def _answered(self, running: Running) -> tuple[nri.ContainerAdjustment | None, list[nri.ContainerUpdate]]:
        """The plugin's answer; as in the hook, an error of ours leaves the container as it is."""
        try:
            return self.agent.create_container(running.pod, running.container)
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.errors.append(f"{running.pod.namespace}/{running.pod.name}: {type(error).__name__}: {error}")
            return None, []

    def _record(self, order: Order) -> Running:
        self._created += 1
        pod = Pod(order.name, order.namespace, order.uid, order.annotations, order.labels, id=f"sandbox-{order.uid}")
        resources = resources_of(order.cpu_milli / 1000, 0, order.memory)
        record = Container(order.container, pod, resources, id=f"container-{order.uid}", state=nri.CONTAINER_CREATED)
        container, sandbox = record.message(), pod.message()
        container.created_at = self._created
        sandbox.ips.append(order.ip)
        machine = self.spec.machine
        return Running(sandbox, container, order.cpu_milli, order.memory, machine.all_cpus, machine.all_mems)

    def _start_other(self, uid: str, cpus: CpuSet, cpu_milli: int) -> None:
        running = self._record(Order(self.spec.name, uid, "other", uid, "main", {}, {}, cpu_milli, 0, "", 0.0))
        running.cpus = cpus
        running.container.linux.resources.cpu.cpus = str(cpus)
        running.container.state = nri.CONTAINER_RUNNING
        self.running[running.container.id] = running

    def _set(self, updates: Iterable[nri.ContainerUpdate]) -> None:
        for update in updates:
            self._pin(self.running[update.container_id], update.linux.resources.cpu)

    def _pin(self, running: Running, cpu: nri.LinuxCPU) -> None:
        """An empty set changes nothing, as in NRI."""
        running.cpus = CpuSet.parse(cpu.cpus) or running.cpus
        running.mems = NumaSet.parse(cpu.mems) or running.mems
        running.container.linux.resources.cpu.MergeFrom(cpu)

    def _homes(self, running: Running) -> str:
        return str(self.spec.machine.nodes_of(running.cpus))

    def _notify(self, messages: Iterable[local.FromHook]) -> None:
        for message in messages:
            if message.HasField("report"):
                self.mirror.reported(message.report)

    def _cpuset_now(self, cgroup: str) -> tuple[CpuSet, NumaSet] | None:
        for running in self.running.values():
            if running.container.linux.cgroups_path == cgroup:
                return running.cpus, running.mems
        return None

    def _free_memory(self) -> dict[int, int]:
        """As if every pod used what it asks for, evenly on the NUMA nodes where it runs."""
        machine = self.spec.machine
        free = {numa_node.id: numa_node.memory - numa_node.memory // RESERVE for numa_node in machine.numa_nodes}
        for running in self.running.values():
            homes = machine.nodes_of(running.cpus)
            for home in homes if running.memory else ():
                free[home] = max(0, free[home] - running.memory // len(homes))
        return free


OUTCOMES = ("kept", "declined", "unpromised")
"""The agent's own counts for a container that it placed."""


def _limited(_cgroups_path: str, _pod: str) -> bool:
    """Every pod here has one container, with a memory limit."""
    return True
