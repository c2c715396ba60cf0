"""A node whose containers use CPU: event by event, the kernel's files are real ones in a folder.

What containers get is played as the kernel's scheduler shares it: each thread is on one CPU of its cpuset, those that
have little choice first, the others where there is least to do, and a CPU that is asked for more than it has gives each
its part.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.harm.sharing import Sharer, fair
from enforcer.hook.agent import Agent
from enforcer.hook.facts.nominations import Nominations
from enforcer.hook.hardware.node import read_node
from enforcer.settings.config import Config
from lab.standins.cri.cgroups import Cgroups
from lab.standins.machines import MACHINES, write_procfs
from numakin.placement.model.cpuset import CpuSet
from numakin.wire import nri_pb2 as nri
from tests.enforcer.hook.world import container, path_of, pod
from tests.trees import sysfs

Wants = Mapping[str, tuple[int, float]]
"""By container: its threads, and the part of a CPU that each would use."""


class BusyNode:
    """`refresh` is what the hook does every five seconds; the clock is the test's. `cpusets` is what the runtime set.

    pressure: whether the kernel keeps `cpu.pressure`.
    """

    def __init__(self, folder: Path, name: str, *, pressure: bool = False) -> None:
        self.machine = MACHINES[name].machine
        self.cgroups = Cgroups(folder, str(self.machine.cpus), str(self.machine.mems))
        mounts = (self.cgroups.procfs / "mounts").read_text()
        write_procfs(MACHINES[name], self.cgroups.procfs)
        (self.cgroups.procfs / "mounts").write_text(mounts)
        self.now, self._pressure = 0.0, pressure
        self._ticks = dict.fromkeys(self.machine.cpus, (0.0, 0))
        self._seconds: dict[str, tuple[float, float]] = {}
        self.cpusets: dict[str, CpuSet] = {}
        self.facts = read_node(Config(sysfs=str(sysfs(name)), procfs=str(self.cgroups.procfs)))
        self.agent = Agent(self.facts, Nominations())
        self.agent.relief._clock = lambda: self.now

    def create(self, name: str, asked: float = 0.05, **annotations: str) -> CpuSet:
        """A pod of one container; a stranger without annotations."""
        made = container(name, asked)
        self.cgroups.make(made.linux.cgroups_path)
        adjust, updates = self.agent.create_container(pod(name, **annotations), made)
        given = CpuSet.parse(adjust.linux.resources.cpu.cpus) if adjust is not None else CpuSet()
        self.cpusets[name] = given or self.machine.cpus
        self.carry_out(updates)
        return self.cpusets[name]

    def stop(self, name: str) -> None:
        self.carry_out(self.agent.stop_container(pod(name), container(name)))
        self.agent.stop_pod_sandbox(pod(name))
        self.cpusets.pop(name, None)

    def cpus(self, name: str) -> CpuSet:
        return self.agent.occupancy.allocations[name].cpus

    def carry_out(self, updates: list[nri.ContainerUpdate]) -> dict[str, CpuSet]:
        given = {update.container_id: CpuSet.parse(update.linux.resources.cpu.cpus) for update in updates}
        assert not any(update.linux.resources.cpu.mems for update in updates), "memory stays where it is"
        self.cpusets |= given
        return given

    def out(self) -> set[str]:
        """The containers of members that are let out."""
        reservations = self.agent.occupancy.reservations.values()
        return {reservation.pod.removeprefix("uid-") for reservation in reservations if reservation.let_out}

    def hot(self) -> set[str]:
        return {str(CpuSet(mask)) for mask, hot in self.agent.occupancy.live.hot.items() if hot}

    def got(self, wants: Wants, cpusets: Mapping[str, CpuSet]) -> dict[str, float]:
        """CPUs that each container gets within these cpusets."""
        return self._shared(wants, cpusets)[0]

    def _shared(
        self, wants: Wants, cpusets: Mapping[str, CpuSet]
    ) -> tuple[dict[str, float], dict[str, float], dict[int, float]]:
        """What each container gets, the share of time that it waits, and what each CPU is asked for."""
        asked, placed = dict.fromkeys(self.machine.cpus, 0.0), list[tuple[str, int, float]]()
        for name, (threads, each) in sorted(wants.items(), key=lambda item: len(cpusets[item[0]])):
            for _ in range(threads):
                cpu = min(cpusets[name], key=lambda cpu: (round(asked[cpu], 6), cpu))
                asked[cpu] += each
                placed.append((name, cpu, each))
        got, waits = dict.fromkeys(wants, 0.0), dict.fromkeys(wants, 0.0)
        for name, cpu, each in placed:
            part = min(1.0, 1 / asked[cpu]) if asked[cpu] else 1.0
            got[name] += each * part
            waits[name] = max(waits[name], 1 - part)
        return got, waits, asked

    def work(self, wants: Wants, rounds: int) -> dict[str, float]:
        """Rounds of five seconds in which containers use CPU as they want and may; what each got in the last."""
        got: dict[str, float] = {}
        for _ in range(rounds):
            got, waits, asked = self._shared(wants, self.cpusets)
            self.pass_time({cpu: min(1.0, milli) for cpu, milli in asked.items()}, got, waits)
        return got

    def pass_time(
        self, busy: Mapping[int, float], used: Mapping[str, float], waits: Mapping[str, float] = {}
    ) -> dict[str, CpuSet]:
        """Five seconds with these CPUs in use, and so many of them by each container; the cpusets that are new."""
        self.now += 5
        self._ticks = {
            cpu: (work + 500 * busy.get(cpu, 0.0), total + 500) for cpu, (work, total) in self._ticks.items()
        }
        lines = [
            f"cpu{cpu} {round(work)} 0 0 {total - round(work)} 0 0 0 0 0 0"
            for cpu, (work, total) in self._ticks.items()
        ]
        (self.cgroups.procfs / "stat").write_text("\n".join(lines))
        for name, cpus in used.items():
            seconds, waited = self._seconds.get(name, (0.0, 0.0))
            self._seconds[name] = seconds + 5 * cpus, waited + 5 * waits.get(name, 0.0)
            self._write(name)
        self.agent.refresh()
        return self.carry_out(self.agent.ledger.settle())

    def _write(self, name: str) -> None:
        folder, (seconds, waited) = self.cgroups.root / path_of(name).lstrip("/"), self._seconds[name]
        (folder / "cpu.stat").write_text(f"usage_usec {int(seconds * 1e6)}\nuser_usec 0\n")
        if self._pressure:
            line = f"avg10=0.00 avg60=0.00 avg300=0.00 total={int(waited * 1e6)}"
            (folder / "cpu.pressure").write_text(f"some {line}\nfull {line}\n")


class FairNode(BusyNode):
    """Whose kernel shares CPUs out evenly in the long run, all requests being alike."""

    def _shared(
        self, wants: Wants, cpusets: Mapping[str, CpuSet]
    ) -> tuple[dict[str, float], dict[str, float], dict[int, float]]:
        machine, wanted = self.machine, {name: threads * each for name, (threads, each) in wants.items()}
        left = {node: float(count) for node, count in machine.cpu_counts.items()}
        masks = {name: machine.nodes_of(cpusets[name]).mask for name in wants}
        got = dict(zip(wants, fair(left, [Sharer(wanted[name], 1.0, masks[name]) for name in wants]), strict=True))
        for name in sorted(wants, key=lambda name: masks[name].bit_count()):
            part = got[name]
            for node, free in left.items():
                taken = min(part, free) if masks[name] >> node & 1 else 0.0
                part, left[node] = part - taken, free - taken
        used = {cpu: 1 - left[node] / machine.cpu_counts[node] for node in left for cpu in machine.node(node).cpus}
        return got, {name: 1 - got[name] / wanted[name] for name in wants}, used
