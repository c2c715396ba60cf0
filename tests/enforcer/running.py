"""`numakin-enforcer run` as a real process, with a runtime at the other end of a real unix socket that speaks NRI."""

import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from enforcer.cli.status import NobodyAnswersError, answered, ask
from lab.standins.extender import Process
from lab.standins.machines.in_memory import in_memory
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime import VERSIONS
from lab.standins.runtime.runtime import Runtime
from numakin.placement.model.cpuset import CpuSet
from numakin.process.ports import free_address
from tests import forked
from tests.metrics import value
from tests.titled import children
from tests.trees import sysfs

GROUP = {"group.numakin.io": "web"}

PLAYED = {f"NRI {version}": {"nri_version": version} for version in VERSIONS} | {
    "CRI-O": {"name": "cri-o", "version": "1.37.0", "nri_version": "0.12.0"}
}
"""The runtimes that tests play: containerd by its version of NRI, and CRI-O."""


class Enforcer:
    """`numakin-enforcer run` on a Xeon with two NUMA nodes. constants: as `forked.enforcer` has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_dir = folder / "run"
        self.socket = folder / "nri.sock"
        self.metrics = free_address()
        self.sysfs = sysfs("xeon-8380")
        self.module = "enforcer"
        self.log = folder / "log"
        self.processes: list[Process] = []
        self.constants: Mapping[str, float] = forked.AS_WRITTEN

    def start(self, *more: str) -> Process:
        return self._start(self.module, "run", *self._options, *more)

    def start_hook(self) -> Process:
        """The hook alone."""
        return self._start("enforcer.hook", *self._options)

    @property
    def _options(self) -> tuple[str, ...]:
        return (
            "--nri-socket", str(self.socket), "--run-dir", str(self.run_dir), "--sysfs", str(self.sysfs),
            "--node-name", "n1", "--metrics-listen", self.metrics, "--observe", "off",
        )  # fmt: skip

    def _start(self, module: str, *arguments: str) -> Process:
        with self.log.open("ab") as log:
            if module == "enforcer" and sys.executable == forked.PYTHON:
                process = forked.enforcer(arguments, log, os.environ, constants=self.constants)
            else:
                process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def said(self, words: str) -> str:
        """The first line of its log that has them, once there is one."""
        return until(lambda: next((line for line in self._lines() if words in line), ""), f"a line with {words!r}")

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines(keepends=True)

    def status(self) -> dict:
        """What `numakin-enforcer status --json` prints, once it is answered: on a busy machine that may take longer than
        people wait.
        """

        def answer() -> dict:
            try:
                return answered(self.run_dir)
            except NobodyAnswersError:
                return {}

        return until(answer, "an answer")

    def children(self) -> dict[str, int]:
        """The pids of the hook and the observer."""
        return children(self.processes[-1].pid)

    def joined(self) -> bool:
        try:
            return bool(ask(self.run_dir)["registered"])
        except NobodyAnswersError:
            return False

    def parted(self) -> bool:
        """Whether it answers that no runtime has it registered; a question without an answer says nothing."""
        try:
            return not ask(self.run_dir)["registered"]
        except NobodyAnswersError:
            return False

    def kill_hook(self) -> None:
        """Its supervisor starts another."""
        hook = self.children()["hook"]
        os.kill(hook, signal.SIGKILL)
        until(lambda: self.children().get("hook", hook) != hook, "another hook")

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.metrics}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str, **labels: str) -> float:
        """0 where nobody answers, or there is no such series yet."""
        return value(self.get("/metrics")[1], name, **labels)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture
def enforcer() -> Iterator[Enforcer]:
    with tempfile.TemporaryDirectory(prefix="numakin.", dir=in_memory()) as folder:
        made = Enforcer(Path(folder))
        yield made
        made.close()


@pytest.fixture
def runtime(enforcer: Enforcer) -> Iterator[Runtime]:
    with Runtime(enforcer.socket) as made:
        yield made


def numa_cpus(enforcer: Enforcer) -> list[CpuSet]:
    return [
        CpuSet.parse((enforcer.sysfs / f"devices/system/node/node{number}/cpulist").read_text()) for number in (0, 1)
    ]


def cpus(runtime: Runtime, container) -> CpuSet:
    return CpuSet.parse(runtime.containers[container.id].resources.cpu.cpus)
