"""A node whose enforcer may end at any moment: an agent with its recorder, the cgroups, and a runtime's list, which
outlive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from enforcer.hook.agent import Agent
from enforcer.hook.facts.node_facts import DEFAULT_RULES, NodeFacts
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.ownership.recorder import Recorder
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import path_of


class Restarting:
    """`agent` is None while there is no enforcer. The runtime's updates are carried out as it does: an empty list
    changes nothing, a container that is not there is passed over, and one that is starting then starts with the cpuset
    that it was created with.

    attached: whether the runtime has the plugin; while it has not, it asks and tells nothing. behind: containers of
    whose updates some were lost since the last Synchronize that was carried out. unified: a cgroup that nobody has set
    has no cpuset of its own, as in version 2; else it has all CPUs by name. at_any_time: whether the runtime may be sent
    updates whatever it is doing. limited: as `World` has it. creating: containers whose creation is
    under way, which no list of the runtime has. pages: bytes on each NUMA node, by the cgroup of a container that runs.
    moved: the most of them that the kernel has moved for one update, by container.
    """

    def __init__(
        self,
        machine: Machine,
        run_dir: Path,
        *,
        reserved: CpuSet = CpuSet(),
        rules: Rules = DEFAULT_RULES,
        within_others: bool = False,
        unified: bool = False,
        at_any_time: bool = True,
        limited: bool | None = None,
    ) -> None:
        self.machine, self.run_dir, self.reserved, self.rules = machine, run_dir, reserved, rules
        self.within_others, self.unified, self.at_any_time = within_others, unified, at_any_time
        self.limited = limited
        self.spare = run_dir.with_name(f"{run_dir.name}.memory") / "spare.json"
        self.spare.parent.mkdir()
        self.cgroups: dict[str, tuple[CpuSet, NumaSet]] = {}
        self.created: dict[str, tuple[CpuSet, NumaSet]] = {}
        self.sandboxes: dict[str, nri.PodSandbox] = {}
        self.running: dict[str, tuple[nri.PodSandbox, nri.Container]] = {}
        self._lacking: dict[str, set[str]] = {}
        self.creating: set[str] = set()
        self.pages: dict[str, dict[int, int]] = {}
        self.moved: dict[str, int] = {}
        self.busy: dict[int, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self.used_memory: dict[int, int] = {}
        self.stalled: dict[int, float] = {}
        self.agent: Agent | None = None
        self.attached = False
        self.start()

    def start(self, *, joined: bool = True) -> None:
        """A new process, and the runtime's Synchronize, unless the runtime is away."""
        self.agent = Agent(self.facts(), Nominations())
        self.recorder = Recorder(self.run_dir, self.spare, self.agent, lambda _write: None)
        self.recorder.restore()
        if joined:
            self.synchronize()

    def facts(self) -> NodeFacts:
        """The node as it is now."""
        return NodeFacts(
            self.machine,
            self.reserved,
            self.cgroups.get,
            self.free_memory,
            load=lambda: Live(stalled=self.stalled),
            limited=lambda _path, _uid: self.limited,
            rules=self.rules,
            memory_now=self.pages.get,
            in_vm="kata".__eq__,
            within_others=self.within_others,
            pod_cgroup=lambda _path, uid: any(sandbox.uid == uid for sandbox in self.sandboxes.values()),
            busy_cpus=lambda: self.busy,
            cpu_seconds=self.cpu_seconds.get,
        )

    def free_memory(self) -> dict[int, int]:
        used = self.used_memory
        return {node.id: max(0, node.memory - used.get(node.id, 0)) for node in self.machine.numa_nodes}

    def becomes(self, machine: Machine, *, lost: bool = False) -> None:
        """CPUs or memory have gone or come, whether or not an enforcer is there to see it. Version 2 keeps what a cgroup
        was set to, and lets it have what is there of that. lost: as `push` has it.
        """
        assert self.unified
        self.machine = machine
        for key in self.running:
            self._keep_within(key)
        if self.agent is not None:
            self.tell(self.agent.rehoming.onto(self.facts()), lost=lost)

    def kill(self) -> None:
        """What has not been written down is lost."""
        self.agent, self.attached = None, False

    def restart(self, *, killed: bool) -> None:
        """Of the process, or the runtime registers it again."""
        if killed:
            self.kill()
            self.start()
        else:
            self.synchronize()

    def fill(self) -> None:
        """Nothing can be written to the run folder: a folder is in the draft's way."""
        (self.run_dir / ".allocations.json.draft").mkdir(exist_ok=True)

    def empty(self) -> None:
        (self.run_dir / ".allocations.json.draft").rmdir()

    @property
    def behind(self) -> set[str]:
        return {*self._lacking}

    def lacks(self, updates: Iterable[nri.ContainerUpdate]) -> None:
        """These are not carried out."""
        for update in updates:
            self._lacking.setdefault(update.container_id, set()).update(_named(update))

    def caught_up(self, *containers: str) -> None:
        """These have all that they were given."""
        for key in containers:
            self._lacking.pop(key, None)

    @property
    def heard(self) -> Agent | None:
        """The agent, where the runtime has it, for an event."""
        if self.agent is None or not self.attached:
            return None
        self.recorder.note_event()
        return self.agent

    def synchronize(self, *, lost: bool = False) -> list[nri.ContainerUpdate]:
        """lost: the answer came too late, and the runtime has hung up."""
        assert self.agent is not None
        pods = {pod.id: pod for pod, _ in self.running.values()} | self.sandboxes
        listed = [container for key, (_, container) in self.running.items() if key not in self.creating]
        updates = self.agent.synchronize([*pods.values()], listed)
        self.agent.moves.all_told()
        self.recorder.write()
        self.attached = True
        self._lacking.clear()  # it compares with the cgroups
        self.apply(updates, lost=lost)
        return updates

    def run_sandbox(self, pod: nri.PodSandbox) -> None:
        self.sandboxes[pod.id] = pod
        if self.heard is not None:
            self.heard.run_pod_sandbox(pod)

    def end_sandbox(self, pod: nri.PodSandbox, *, told: bool = True) -> None:
        """told: containerd says nothing of those that it recovered at its own start."""
        self.sandboxes.pop(pod.id, None)
        if told and self.heard is not None:
            self.heard.stop_pod_sandbox(pod)

    def create(
        self,
        pod: nri.PodSandbox,
        container: nri.Container,
        *,
        listed: bool = True,
        lost: bool = False,
        carried_out: bool = True,
        under_way: bool = False,
    ) -> None:
        """With whoever is there; nothing is written down yet. listed: False where the creation fails after all, for
        somebody else's reason, of which the runtime says nothing. carried_out: whether our updates of other containers
        are, before it fails. lost: our answer came too late, and it starts without. under_way: its creation has not
        ended yet.
        """
        claim, nothing = container.linux.resources.cpu, (CpuSet(), NumaSet())
        unset = nothing if self.unified else (self.machine.all_cpus, self.machine.all_mems)
        cpus, mems = CpuSet.parse(claim.cpus) or unset[0], NumaSet.parse(claim.mems) or unset[1]
        updates: list[nri.ContainerUpdate] = []
        if self.heard is not None:
            adjust, updates = self.heard.create_container(pod, container)
            if adjust is not None and not lost:
                cpu = adjust.linux.resources.cpu
                cpus, mems = CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems
                container.annotations.update(adjust.annotations)
                _tell(container, cpu)
        if listed:
            self.cgroups[container.linux.cgroups_path] = self.created[container.id] = cpus, mems
            self.running[container.id] = pod, container
        self.apply(updates, lost=lost or not (listed or carried_out), hung_up=lost)
        if listed:
            self.creating.add(container.id)
            if not under_way:
                self.finish(container.id, told=not lost)

    def finish(self, container: str, *, told: bool = True) -> None:
        """Its creation ends: the runtime lists it from now on."""
        if container in self.creating:
            self.creating.discard(container)
            if told and self.heard is not None:
                self.heard.post_create_container(*self.running[container])

    def begin(self, container: str) -> None:
        """A container that was created starts, with the cpuset of its creation."""
        self.finish(container)
        pod, started = self.running[container]
        if self.heard is not None:
            self.heard.start_container(pod, started)
        started.state, started.pid = nri.CONTAINER_RUNNING, 1
        self.cgroups[started.linux.cgroups_path] = self.created[container]
        if self.heard is not None:
            self.caught_up(container)  # it compares
            self.tell(self.heard.post_start_container(pod, started))

    def fail(self, container: str) -> None:
        """A container that was created does not start: the runtime has it among those that ended, and tells nothing."""
        self.creating.discard(container)
        _, ended = self.running.pop(container)
        self._remove(ended)

    def stop(self, container: str, *, lost: bool = False, hung_up: bool = True, sandbox: bool = True) -> None:
        """lost: the runtime carries out nothing of our answer. hung_up: since it came too late. sandbox: its pod ends
        as well.
        """
        pod, ended = self.running.pop(container)
        self._remove(ended)
        self.creating.discard(container)
        self.caught_up(container)
        if self.heard is not None:
            self.apply(self.heard.stop_container(pod, ended), lost=lost, hung_up=hung_up)
            if sandbox and not lost:
                self.heard.stop_pod_sandbox(pod)

    def release(self, *, lost_after: int | None = None) -> None:
        assert self.agent is not None
        self.push(self.agent.release(), lost_after=lost_after)

    def push(self, updates: list[nri.ContainerUpdate], *, lost: bool = False, lost_after: int | None = None) -> None:
        """Updates that no event asked for. lost: the runtime hangs up over them; lost_after: once it has carried out so
        many of them.
        """
        self.recorder.sending()
        self.recorder.write()
        if lost_after is not None:
            self.apply(updates[:lost_after])
            updates, lost = updates[lost_after:], True
        self.apply(updates, lost=lost)
        if not lost:
            self.recorder.answered()

    def tell(self, updates: list[nri.ContainerUpdate], *, lost: bool = False) -> None:
        """Updates that no event asked for, as soon as the runtime may have them. lost: as `push` has it."""
        assert self.agent is not None
        if self.at_any_time and self.attached:
            self.push(updates, lost=lost)
            return
        self.agent.moves.take_along(updates)
        self.lacks(updates)

    def apply(self, updates: list[nri.ContainerUpdate], *, lost: bool = False, hung_up: bool = True) -> None:
        assert len({update.container_id for update in updates}) == len(updates), "one update for each container"
        if lost:
            self.lacks(updates)
            self.attached = self.attached and not hung_up
            return
        for update in updates:
            if update.container_id in self.creating:
                self.lacks([update])
            elif update.container_id in self.running:
                lacking = self._lacking.get(update.container_id, set())
                lacking -= _named(update)
                if not lacking:
                    self.caught_up(update.container_id)
                path, cpu = path_of(update.container_id), update.linux.resources.cpu
                cpus, mems = self.cgroups[path]
                self.cgroups[path] = CpuSet.parse(cpu.cpus) or cpus, NumaSet.parse(cpu.mems) or mems
                moved = self._keep_within(update.container_id)
                self.moved[update.container_id] = max(moved, self.moved.get(update.container_id, 0))
                _tell(self.running[update.container_id][1], cpu)

    def _keep_within(self, container: str) -> int:
        """The kernel moves the pages that `cpuset.mems` leave out before it returns; how many bytes."""
        pages, mems = self.pages.get(path_of(container), {}), self.mems(container)
        gone = sum(pages.pop(node) for node in [*pages] if node not in mems)
        if gone:
            pages[mems.lowest] = pages.get(mems.lowest, 0) + gone
        return gone

    def _remove(self, ended: nri.Container) -> None:
        del self.cgroups[ended.linux.cgroups_path]
        self.pages.pop(ended.linux.cgroups_path, None)

    def use(self, wanted: Mapping[str, float], seconds: float) -> None:
        """Containers take so many CPUs where they may run, for so long; what is too much for a CPU is shared out."""
        on = {key: self.cpus(key) for key in wanted}
        asked = {cpu: sum(wanted[key] / len(on[key]) for key in on if cpu in on[key]) for cpu in self.machine.all_cpus}
        self.busy = {cpu: min(1.0, share) for cpu, share in asked.items()}
        for key, cpus in on.items():
            got = sum(wanted[key] / len(cpus) / max(1.0, asked[cpu]) for cpu in cpus)
            self.cpu_seconds[path_of(key)] = self.cpu_seconds.get(path_of(key), 0.0) + got * seconds

    def cpus(self, container: str) -> CpuSet:
        """Those that it effectively has."""
        everything = self.machine.all_cpus
        return (self.cgroups[path_of(container)][0] & everything) or everything

    def set_to(self, container: str) -> CpuSet:
        """What its cgroup has of its own; empty: nothing."""
        return self.cgroups[path_of(container)][0]

    def mems(self, container: str) -> NumaSet:
        """The NUMA nodes of whose memory it may effectively have some."""
        everywhere = self.machine.all_mems
        return (self.cgroups[path_of(container)][1] & everywhere) or everywhere


def _named(update: nri.ContainerUpdate) -> set[str]:
    """What of a cpuset it is about."""
    return {field.name for field, _ in update.linux.resources.cpu.ListFields()}


def _tell(container: nri.Container, cpu: nri.LinuxCPU) -> None:
    """A runtime lists its containers with what was set last."""
    told = container.linux.resources.cpu
    told.cpus, told.mems = cpu.cpus or told.cpus, cpu.mems or told.mems


def ours(node: Restarting, name: str) -> bool:
    allocation = node.agent.occupancy.allocations.get(name)
    return allocation is not None and not allocation.externally_managed and allocation.reservation != name
