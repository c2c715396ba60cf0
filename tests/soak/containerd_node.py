"""A node under test with a real containerd: what became of each container is read from the kernel's cgroups."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import grpc

from enforcer.machine.sysfs import read_machine
from numakin.placement.model.cpuset import CpuSet
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Pod
from tests.e2e.lab.idle import idle_procfs
from tests.e2e.lab.runtimes import installations
from tests.e2e.lab.split_machine import split
from tests.soak import run_folder
from tests.soak.clock import WallClock
from tests.soak.nodes import ContainerFailed, Uplink
from tests.soak.pods import PodSpec, Room
from tests.soak.processes import Enforcer

CPUS = 0.05
"""Of each container, so that every member fits whatever this machine has."""


class ContainerdNode:
    """This machine's CPUs as two NUMA nodes. No exclusive CPUs: on a small machine they would be all of a NUMA node."""

    def __init__(self, name: str, folder: Path, uplink: Uplink, processes: ExitStack, runtime: str) -> None:
        self.name = name
        self.run_dir = folder / "run"
        processes.enter_context(run_folder.mounted(self.run_dir))
        halves = split(folder / "sys")
        self.machine = read_machine(halves.sysfs, name=name)
        self.room = Room(pods=10, exclusive_cpus=0, cpus=(CPUS,))
        self._whole = CpuSet.parse(halves.whole)
        self._calls = threading.Lock()
        self._pods: dict[str, Pod] = {}
        self._pids: dict[str, int] = {}
        self._runtime = next(each for each in installations() if each.name == runtime).runtime()
        processes.callback(self._runtime.destroy)
        self._runtime.start()
        options = ["--node-name", name, "--nri-socket", str(self._runtime.nri_socket), "--run-dir", str(self.run_dir)]
        options += ["--sysfs", str(halves.sysfs), "--procfs", str(idle_procfs(folder)), "--extender", uplink.address]
        options += ["--metrics-listen", "", "--observe", "off"]
        self.clock = WallClock(folder)
        self.enforcer = Enforcer(options, folder / "enforcer.log", self.clock, uplink.within)
        processes.callback(self.enforcer.close)
        self.enforcer.keep()

    def run(self, spec: PodSpec, uid: str) -> str:
        kubelet, resources = self._runtime.kubelet, cri.LinuxContainerResources(cpu_shares=int(CPUS * 1024))
        try:
            with self._calls:
                pod = kubelet.run_pod(spec.name, namespace="soak", uid=uid, annotations=spec.annotations)
                container = kubelet.run(pod, resources=resources)
                self._pids[container] = kubelet.pid(container)
        except grpc.RpcError as error:
            raise ContainerFailed(f"{spec.name}: {error.details()}") from error
        self._pods[container] = pod
        return container

    def end(self, container: str) -> None:
        pod = self._pods.pop(container)
        try:
            with self._calls:
                self._runtime.kubelet.end_pod(pod.id)
        except grpc.RpcError as error:
            raise ContainerFailed(f"{pod.config.metadata.name}: {error.details()}") from error

    def cpus(self, container: str) -> CpuSet:
        """Empty for all of the machine's: on cgroup v1 a container has its parent's from the start."""
        cpus = CpuSet.parse(kernel.cpuset(self._pids[container]).cpus)
        return CpuSet() if cpus == self._whole else cpus

    def own(self, spec: PodSpec) -> CpuSet:
        return CpuSet.parse(spec.claim)

    def marked(self, container: str) -> bool:
        """The kernel knows no annotations."""
        del container
        return False

    def restart(self, how: signal.Signals) -> None:
        """Between two calls: those that are under way when a runtime ends fail by themselves."""
        with self._calls:
            (self._runtime.stop if how is signal.SIGTERM else self._runtime.kill)()
            self._runtime.start()
