"""One run: all plugins at once, measured in turn, a block of creates each, so that they meet the same machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.runtime import plugins
from benchmarks.runtime.plugins import Numakin, Plugin, Usage
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError, NotThere
from lab.standins.machines import MACHINES, write_sysfs
from numakin.process.ports import free_address

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MACHINE = "kunpeng-920-2s"
"""Four NUMA nodes."""

REQUESTED = 0.6
"""Of the machine's CPUs, by the containers that run."""

PROGRAM = ("enforcer", "numakin")
"""The folders of numakin that an enforcer's image has."""

LEARNING_S = 60.0
"""How long learning may take."""


@dataclass(frozen=True, slots=True)
class Load:
    """count: timed creates of each plugin and kind. parallel: so many at once. hog: a process computes beside them."""

    count: int = 500
    parallel: int = 1
    hog: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """loads: one after the other on the same processes. sources: the folders whose numakin is measured, by name.
    settle_s: after the graph is learned, for plans.
    """

    loads: Sequence[Load] = (Load(),)
    block: int = 25
    running: int = 200
    settle_s: float = 5.0
    sources: Mapping[str, Path] = field(default_factory=lambda: {"numakin": ROOT})

    @property
    def shares(self) -> int:
        """CPU shares of each container, so that those that run leave room for the new ones."""
        return int(REQUESTED * len(MACHINES[MACHINE].machine.all_cpus) * 1024 / self.running)


Micros: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""Latencies by plugin and kind."""


@dataclass(frozen=True, slots=True)
class Result:
    """micros: of each load. registered_s: from the start of numakin's process to the end of Synchronize. usage: of each
    of its processes, before the first load and after each.
    """

    micros: Sequence[Micros]
    registered_s: Mapping[str, float]
    usage: Mapping[str, Sequence[Mapping[str, Usage]]]


class Unavailable(Exception):
    """What this machine lacks, by name."""


def build(folder: Path) -> None:
    """The Go programs into the folder. Unavailable where there is no Go or no NRI library, and they can't be had."""
    built = subprocess.run([HERE / "build", folder], capture_output=True, text=True, check=False)
    if built.returncode:
        raise Unavailable(built.stderr.strip() or "benchmarks/runtime/build failed")


def run(settings: Settings, binaries: Path, folder: Path) -> Result:
    write_sysfs(MACHINES[MACHINE], folder / "sys")
    metrics = {name: free_address() for name in settings.sources}
    subjects = [
        Plugin("go", ("plain",), (str(binaries / "least_go"), "@"), folder / "go.sock"),
        Plugin(
            "python", ("plain",), (sys.executable, "-m", "benchmarks.runtime.least_python", "@"), folder / "py.sock"
        ),
    ]
    for name, source in settings.sources.items():
        _compile(source)
        (folder / name).mkdir()
        numakin = Numakin(folder / name, folder / "sys", settings.running, source)
        subjects.append(Plugin(name, ("opted", "plain"), numakin.command(metrics[name]), numakin.socket))
    with ExitStack() as stack:
        memory = stack.enter_context(_pods_cgroup())
        driver = stack.enter_context(_driver(binaries / "driver", settings, subjects, memory, folder))
        assert driver.stdout is not None
        driver.stdout.readline()  # it listens
        started, registered_s = {}, {}
        for subject in subjects:  # one after the other: each start is measured alone
            began = time.monotonic()
            started[subject.name] = stack.enter_context(_started(subject, settings, folder))
            assert json.loads(driver.stdout.readline())["registered"] == subject.name
            registered_s[subject.name] = time.monotonic() - began
        _learned(metrics.values())
        time.sleep(settings.settle_s)
        pids = {name: plugins.processes(started[name]) for name in settings.sources}
        usage = {name: [plugins.usage(pids[name])] for name in pids}
        micros = []
        for load in settings.loads:
            with _hog() if load.hog else ExitStack():
                micros.append(_measured(driver, subjects, load))
            for name, processes in pids.items():
                usage[name].append(plugins.usage(processes))
        return Result(micros, registered_s, usage)


def _compile(source: Path) -> None:
    """As an image has it: without bytecode, which PYTHONDONTWRITEBYTECODE in the environment keeps from being written,
    Python would compile all of it at each start, 50 to 100 ms and 2 MiB.
    """
    subprocess.run([sys.executable, "-m", "compileall", "-q", *PROGRAM], cwd=source, check=False)


def _measured(driver: subprocess.Popen[str], subjects: Sequence[Plugin], load: Load) -> Micros:
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(f"{load.count} {load.parallel}\n")
    driver.stdin.flush()
    micros = {}
    for subject in subjects:
        for kind in subject.kinds:
            row = json.loads(driver.stdout.readline())
            if (subject.name, kind) != (row["plugin"], row["kind"]):
                raise RuntimeError(f"the driver's rows are out of order: {row['plugin']} {row['kind']}")
            if kind == "opted" and row["pinned"] != len(row["micros"]):
                raise RuntimeError(f"{row['pinned']} of {len(row['micros'])} opted-in containers were pinned")
            micros[subject.name, kind] = row["micros"]
    return micros


@contextmanager
def _pods_cgroup() -> Iterator[Path | None]:
    """A cgroup of the memory controller for new pods, as a kubelet gives each of its own; None where that may not be
    made. The kubelet limits a pod's before its sandbox is there, so that nobody has to look again at CreateContainer.
    """
    with ExitStack() as stack:
        try:
            folder = _made_cgroup(stack)
        except (OSError, MachineError) as error:
            print(f"new pods have no cgroup of their own, as a kubelet would make: {error}", file=sys.stderr)
            folder = None
        yield folder


def _made_cgroup(stack: ExitStack) -> Path:
    """Removed with the stack, and what was made below it. OSError, MachineError."""
    tree = CgroupTree.discover()
    mount = tree.controllers.get("memory", tree.unified)
    if mount is None:
        raise NotThere("the memory controller is not mounted")
    folder = mount / f"numakin-benchmark-{os.getpid()}"
    folder.mkdir()
    stack.callback(_remove, folder)
    if tree.version("memory") == 2:
        (folder / "cgroup.subtree_control").write_text("+memory")
    return folder


def _remove(cgroup: Path) -> None:
    for folder in sorted([cgroup, *cgroup.rglob("*/")], reverse=True):
        folder.rmdir()


@contextmanager
def _driver(
    program: Path, settings: Settings, subjects: Sequence[Plugin], memory: Path | None, folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """memory: where new pods' cgroups are made. folder: for what it leaves when it is killed."""
    options = [f"-{name}={getattr(settings, name)}" for name in ("block", "running", "shares")]
    options += [] if memory is None else [f"-memory={memory}"]
    command = [program, *options, *(subject.argument for subject in subjects)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        try:
            yield driver
        finally:
            driver.kill()


@contextmanager
def _started(subject: Plugin, settings: Settings, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [part if part != "@" else str(subject.socket) for part in subject.command]
    source = settings.sources.get(subject.name, ROOT)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with (
        (folder / f"{subject.name}.log").open("w") as log,
        subprocess.Popen(command, cwd=source, env=environment, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def _hog() -> Iterator[None]:
    """A process that computes without a pause, beside."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def _learned(addresses: Sequence[str]) -> None:
    until = time.monotonic() + LEARNING_S
    for address in addresses:
        while not plugins.learned(address):
            if time.monotonic() > until:
                raise RuntimeError(f"no traffic was learned within {LEARNING_S:g} s")
            time.sleep(0.1)
