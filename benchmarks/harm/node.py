"""One run: the pods of a situation on a real containerd, with or without numakin, and what each of them got done."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError

from benchmarks.bench.row import NotHere
from benchmarks.harm import worker
from benchmarks.harm.situations import Pod
from enforcer.machine.cgroup import CgroupTree
from lab.standins.patience import until
from numakin.placement.model.demand import SHARES_PER_CPU, shares_of
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel, place
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.runtime import PATIENT, RealRuntime
from tests.e2e.lab.runtimes import TRIXIE
from tests.e2e.lab.split_machine import SplitMachine, split

PASSER_BY_S = 3.0
SHARED = "/harm"
"""The folder of results, in each container."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one pod. throughput: pieces of work a second or, of served work, the part that was done of what came, since
    what comes is drawn. p99_ms: the 99th percentile of their times. cpus: at the end, in the kernel's list format.
    """

    throughput: float
    p99_ms: float
    cpus: str


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the last pod's start to the measurement, with numakin and without, and of the measurement."""

    settle: float
    settle_without: float
    measure: int


class Node:
    """This machine's CPUs as two NUMA nodes, with a runtime."""

    def __init__(self, folder: Path, runtime: RealRuntime, machine: SplitMachine) -> None:
        self._folder, self._runtime, self._size = folder, runtime, worker.piece()
        options = ("--sysfs", str(machine.sysfs), "--procfs", "/proc")
        self._enforcer = RunningEnforcer(folder / "enforcer", runtime.nri_socket, *options)

    def run(self, pods: Sequence[Pod], times: Times, seed: int, *, numakin: bool) -> dict[str, Figures]:
        """By the pods' names, which start anew and are ended. seed: of the moments at which work comes."""
        if numakin:
            self._enforcer.start()
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as name:
                results = Path(name)
                pids = {
                    pod.name: self._start(pod, seed * len(pods) + number, results) for number, pod in enumerate(pods)
                }
                self._settle(times.settle if numakin else times.settle_without)
                begin = int(time.monotonic()) + 1
                until(lambda: time.monotonic() > begin + times.measure + 1.2, "the end of the measurement")
                cpus = {pod: kernel.allowed(pid).cpus for pod, pid in pids.items()}
                window = range(begin, begin + times.measure)
                return {pod.name: figures(results, pod, window, cpus[pod.name]) for pod in pods}
        finally:
            self._runtime.kubelet.end_all_pods()
            self._enforcer.stop()

    def _settle(self, seconds: float) -> None:
        """A pod comes and goes meanwhile, as on any node: before NRI 0.12.1 updates go to the runtime along with an
        answer alone.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, PASSER_BY_S))
            sandbox = self._runtime.kubelet.run_pod("passer-by", annotations={"group.numakin.io": "passers-by"})
            self._runtime.kubelet.run(sandbox, resources=cri.LinuxContainerResources(cpu_shares=shares_of(10)))
            self._runtime.kubelet.end_pod(sandbox.id)

    def _start(self, pod: Pod, seed: int, results: Path) -> int:
        """The pid of its container."""
        sandbox = self._runtime.kubelet.run_pod(pod.name, annotations=pod.annotations)
        shares = shares_of(pod.milli)
        set_shares(sandbox.config.linux.cgroup_parent, shares)
        container = self._runtime.kubelet.run(
            sandbox,
            command=[
                os.path.realpath(sys.executable),
                "/worker.py",
                *(f"{SHARED}/{pod.name}", pod.load, f"{pod.amount:g}", str(self._size), str(seed)),
            ],
            resources=cri.LinuxContainerResources(cpu_shares=shares),
            mounts={SHARED: f"/host{results}", "/worker.py": f"/host{worker.__file__}", **_libraries()},
        )
        return self._runtime.kubelet.pid(container)


def _libraries() -> dict[str, str]:
    """Of this Python, where containers find them."""
    folders = {"/usr", "/lib", "/lib64", sys.base_prefix}
    return {folder: f"/host{os.path.realpath(folder)}" for folder in folders if Path(folder).is_dir()}


def figures(results: Path, pod: Pod, window: range, cpus: str) -> Figures:
    """Of all of the pod's processes, from what they wrote of these seconds."""
    lines = [json.loads(line) for file in results.glob(f"{pod.name}.*") for line in file.read_text().splitlines()]
    seconds = [(done, times) for second, done, times in lines if second in window]
    micros = sorted(micro for _, times in seconds for micro in times)
    # Who got nothing done in all that time waited at least as long as a client does.
    p99 = micros[int(0.99 * len(micros))] if micros else 1e6 * worker.PATIENCE_S
    done = max(1, sum(done for done, _ in seconds))
    return Figures(done / (max(1, len(micros)) if pod.load == "served" else len(window)), p99 / 1000, cpus)


def set_shares(cgroup: str, shares: int) -> None:
    """As the kubelet sets a pod's cgroup, which this lab does not."""
    tree = CgroupTree.discover()
    folder = tree.folder(cgroup, "cpu")
    if folder is None:
        raise LookupError(f"the runtime made no cgroup {cgroup}")
    if tree.version("cpu") == 1:
        (folder / "cpu.shares").write_text(str(shares))
    else:
        (folder / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))


@contextmanager
def node() -> Iterator[Node]:
    """NotHere where this machine can't be one."""
    if reason := place.lacking(place.RUNTIME_TOOLS):
        raise NotHere(f"a real containerd {reason}")
    with tempfile.TemporaryDirectory(prefix="numakin-harm-", dir="/tmp") as name:
        folder = Path(name)
        try:
            machine = split(folder / "sysfs")
            runtime = TRIXIE.runtime(registration_timeout=PATIENT, request_timeout=PATIENT)
        except (ValueError, CalledProcessError) as lack:
            raise NotHere(str(lack)) from lack
        try:
            runtime.start()
            made = Node(folder, runtime, machine)
            # Pods are all below the runtime's cgroup, which on a node has shares for each CPU.
            warm = runtime.kubelet.run_pod("warm")
            runtime.kubelet.end_pod(warm.id)
            set_shares(runtime.cgroup_parent, SHARES_PER_CPU * (os.cpu_count() or 1))
            yield made
        finally:
            runtime.destroy()


def load_average() -> float:
    return float(Path("/proc/loadavg").read_text().split()[0])
