"""One run: the server on its CPUs, the client on its own, and what was seen of both meanwhile."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numakin.compare.arms import Arm
from numakin.compare.workloads import Figures, Workload
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine
from numakin.process.ports import free_port

UP_WITHIN_S = 20.0
END_WITHIN_S = 10.0
SAMPLE_EVERY_S = 0.2

_PAGES = re.compile(r" N(\d+)=(\d+)")


class RunFailed(RuntimeError):
    """The server did not come up, or the client failed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One arm once. local: share of samples in which both ends ran on one NUMA node. remote_pages: share of the
    server's pages that are not on the NUMA nodes of its CPUs. placed: share of its pods that numakin has placed. Each
    None where it can't be measured. disturbed: how many of its pods restarted or were replaced meanwhile.
    """

    arm: str
    figures: Figures
    local: float | None
    remote_pages: float | None
    placed: float | None = None
    disturbed: int = 0


@dataclass(slots=True)
class _Sampler:
    """Where the threads of two processes, with their children, run: by NUMA node, counted."""

    machine: Machine
    server: int
    client: int
    shares: list[float] = field(default_factory=list)

    def sample(self) -> None:
        ours, theirs = (self._running(pid) for pid in (self.server, self.client))
        if ours and theirs:
            both = ours.total() * theirs.total()
            self.shares.append(sum(ours[numa_node] * theirs[numa_node] for numa_node in ours) / both)

    def _running(self, pid: int) -> Counter[int]:
        """Threads that are on a CPU or were last, by its NUMA node: those that used the most of it lately."""
        threads: Counter[int] = Counter()
        for stat in _threads(pid):
            fields = stat.rpartition(")")[2].split()
            cpu, state = int(fields[36]), fields[0]
            if state == "R":
                threads.update(self.machine.nodes_of(CpuSet.of((cpu,))))
        return threads


def run(machine: Machine, workload: Workload, arm: Arm, seconds: float) -> Run:
    """RunFailed with the last output of the program that failed."""
    with tempfile.TemporaryDirectory(prefix="numakin-compare.") as folder:
        port = free_port()
        server = workload.server(Path(folder), port, arm.server)
        with _started(server, arm.server, Path(folder) / "server.log") as served:
            _wait_for(port, served, Path(folder) / "server.log")
            client = workload.client(port, arm.client, seconds)
            sampler = _Sampler(machine, served.pid, 0)
            output = _loaded(client, arm.client, sampler, seconds)
            pages = _remote_pages(served.pid, machine, arm.server)
    local = sum(sampler.shares) / len(sampler.shares) if sampler.shares else None
    return Run(arm.name, workload.figures(output), local, pages)


def _pinned(command: Sequence[str], cpus: CpuSet) -> list[str]:
    return ["taskset", "--cpu-list", str(cpus), *command]


@contextmanager
def _started(command: Sequence[str], cpus: CpuSet, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    arguments = _pinned(command, cpus)
    with log.open("wb") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            yield process
        finally:
            _signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_WITHIN_S)
            killed(process)


def _signal(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """To it and to all that it has started: a shell's children outlive the shell."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def killed(process: subprocess.Popen[Any]) -> None:
    """With all that it has started. It must have been started in a session of its own."""
    _signal(process, signal.SIGKILL)
    process.wait()


def _wait_for(port: int, served: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    while True:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if served.poll() is not None or time.monotonic() > deadline:
            output = " ".join(log.read_text(errors="replace").split())[-300:]
            raise RunFailed(f"the server does not listen at port {port}: {output or 'without output'}")
        time.sleep(0.02)


def _loaded(command: Sequence[str], cpus: CpuSet, sampler: _Sampler, seconds: float) -> str:
    arguments = _pinned(command, cpus)
    client = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    with client:
        try:
            output = _output(client, cpus, sampler, seconds)
        finally:
            killed(client)
    if client.returncode:
        raise RunFailed(f"the client failed ({client.returncode}): {' '.join(output.split())[-300:]}")
    return output


def _output(client: subprocess.Popen[str], cpus: CpuSet, sampler: _Sampler, seconds: float) -> str:
    """All of it, once the client has ended."""
    sampler.client = client.pid
    deadline = time.monotonic() + 10 * seconds + UP_WITHIN_S
    while True:
        try:
            return client.communicate(timeout=SAMPLE_EVERY_S)[0]
        except subprocess.TimeoutExpired:
            if _is_on(client.pid, cpus):
                sampler.sample()
            if time.monotonic() > deadline:
                raise RunFailed("the client does not end: ten times its time is over") from None


def _is_on(pid: int, cpus: CpuSet) -> bool:
    """Whether a process was put there yet: before that it says nothing of where it runs."""
    try:
        return os.sched_getaffinity(pid) <= {*cpus}
    except OSError:  # gone meanwhile
        return False


def _family(pid: int) -> Iterator[int]:
    """A process and the children of all its threads, theirs too."""
    yield pid
    for children in _of_threads(pid, "children"):
        for child in children.split():
            yield from _family(int(child))


def _threads(pid: int) -> Iterator[str]:
    for member in _family(pid):
        yield from _of_threads(member, "stat")


def _of_threads(pid: int, name: str) -> Iterator[str]:
    """What the file of this name holds of each thread of a process; of what ends meanwhile nothing."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield (thread / name).read_text(errors="replace")  # the kernel cuts a thread's name off at 15 bytes


def _remote_pages(pid: int, machine: Machine, cpus: CpuSet) -> float | None:
    """Of the server's family, by numa_maps; None where it can't be read."""
    home, pages = set(machine.nodes_of(cpus)), Counter[bool]()
    for member in _family(pid):
        try:
            text = Path(f"/proc/{member}/numa_maps").read_text(errors="replace")
        except OSError:
            continue
        for numa_node, count in _PAGES.findall(text):
            pages[int(numa_node) in home] += int(count)
    return pages[False] / pages.total() if pages else None
