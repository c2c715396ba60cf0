"""A node under test: a container runtime, its enforcer, and what the runtime's side shows of each container."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from enforcer.cli.status import NobodyAnswersError, ask
from enforcer.machine.sysfs import read_machine
from lab.standins.runtime.events import CriError
from lab.standins.runtime.records import Container, Pod
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine
from tests.soak import run_folder
from tests.soak.clock import WallClock
from tests.soak.pods import PodSpec, Room
from tests.soak.processes import Enforcer
from tests.trees import sysfs

MACHINE = "xeon-8380"


class ContainerFailed(RuntimeError):
    """The runtime refused a container or a pod."""


@dataclass(frozen=True, slots=True)
class Uplink:
    """How an enforcer reaches the extender. address: HOST:PORT; empty: not at all. within: a command that becomes the one
    after it, in the network namespace from which that address is reached.
    """

    address: str = ""
    within: Sequence[str] = ()


class Node(Protocol):
    """Its runtime's methods may be called while its processes are killed, from one thread."""

    name: str
    run_dir: Path
    machine: Machine
    room: Room
    clock: WallClock
    enforcer: Enforcer

    def run(self, spec: PodSpec, uid: str) -> str:
        """The container's id. Raises ContainerFailed."""
        ...

    def end(self, container: str) -> None:
        """Stops and removes it, and its pod. Raises ContainerFailed."""
        ...

    def cpus(self, container: str) -> CpuSet:
        """Its cpuset by the runtime's side; empty where nobody has set one."""
        ...

    def own(self, spec: PodSpec) -> CpuSet:
        """What `cpus` shows of a container that nobody but its own claim has given CPUs."""
        ...

    def marked(self, container: str) -> bool:
        """Whether it carries an annotation of ours."""
        ...

    def restart(self, how: signal.Signals) -> None:
        """The runtime, by SIGTERM or SIGKILL."""
        ...


def status(node: Node) -> dict[str, Any]:
    """What `numakin-enforcer status` shows; {} while nobody answers."""
    try:
        return ask(node.run_dir)
    except (NobodyAnswersError, ValueError):
        return {}


class EmbeddedNode:
    """A Xeon with two NUMA nodes of 80 CPUs, and the embedded NRI runtime."""

    def __init__(self, name: str, folder: Path, uplink: Uplink, processes: ExitStack) -> None:
        self.name = name
        self.run_dir = folder / "run"
        processes.enter_context(run_folder.mounted(self.run_dir))
        self.machine = read_machine(sysfs(MACHINE), name=name)
        self.room = Room(pods=14, exclusive_cpus=40, cpus=(1, 2, 3, 4), claim="3,83")
        self.runtime = Runtime(folder / "nri.sock", registration_timeout_s=5.0, request_timeout_s=2.0)  # as containerd
        self._made: dict[str, tuple[Pod, Container]] = {}
        self.runtime.start()
        processes.callback(self.runtime.stop)
        options = ["--node-name", name, "--nri-socket", str(folder / "nri.sock"), "--run-dir", str(self.run_dir)]
        options += ["--sysfs", str(sysfs(MACHINE)), "--extender", uplink.address, "--metrics-listen", ""]
        options += ["--observe", "off"]
        self.clock = WallClock(folder)
        self.enforcer = Enforcer(options, folder / "enforcer.log", self.clock, uplink.within)
        processes.callback(self.enforcer.close)
        self.enforcer.keep()

    def run(self, spec: PodSpec, uid: str) -> str:
        try:
            pod = self.runtime.run_pod(spec.name, "soak", uid, spec.annotations)
            container = self.runtime.run_container(pod, "app", cpu_request=spec.cpus, cpus=spec.claim)
        except CriError as error:
            raise ContainerFailed(f"{spec.name}: {error}") from error
        self._made[container.id] = pod, container
        return container.id

    def end(self, container: str) -> None:
        pod, made = self._made.pop(container)
        try:
            self.runtime.stop_container(made)
            self.runtime.remove_pod(pod)
        except CriError as error:
            raise ContainerFailed(f"{pod.name}: {error}") from error

    def cpus(self, container: str) -> CpuSet:
        return CpuSet.parse(self.runtime.containers[container].cpus)

    def own(self, spec: PodSpec) -> CpuSet:
        return CpuSet.parse(spec.claim)

    def marked(self, container: str) -> bool:
        return any(".numakin.io" in key for key in self.runtime.containers[container].annotations)

    def restart(self, how: signal.Signals) -> None:
        """It has no process of its own: either way its connections end without a message."""
        del how
        self.runtime.stop()
        self.runtime.start()
