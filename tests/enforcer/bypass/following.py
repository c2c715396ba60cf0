"""A node without NRI: a stand-in runtime, its cgroups, and `numakin-enforcer run --mode bypass` as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from enforcer.cli.status import NobodyAnswersError, ask
from lab.standins.cri import CriRuntime
from lab.standins.cri.cgroups import Cgroups
from lab.standins.extender import Process
from lab.standins.patience import PATIENCE_S, until
from numakin.process.pulse import PULSE
from tests import forked
from tests.enforcer.command import command
from tests.titled import children
from tests.trees import sysfs

GROUP = {"group.numakin.io": "web"}
ENFORCER = ("enforcer", "run")
HURRIED = ("tests.enforcer.hurried", "bypass")
HALVES = ("0-39,80-119", "40-79,120-159")
"""The CPUs of the Xeon's NUMA nodes."""


class Bypassed:
    """The enforcer on a Xeon with two NUMA nodes; `runtime` is to be started by the test."""

    def __init__(
        self, folder: Path, machine: Path | None = None, program: Sequence[str] = ENFORCER, **runtime: Any
    ) -> None:
        """machine: a sysfs tree of its own, for a test that changes it. program: what runs, with the same options."""
        self.run_dir = folder / "run"
        self.cgroups = Cgroups(folder, "0-159", "0-1")
        self.runtime = CriRuntime(folder / "cri.sock", self.cgroups, **runtime)
        self.sysfs = machine or sysfs("xeon-8380")
        self._node = ["--mode", "bypass", "--cri-socket", f"unix://{folder}/cri.sock", "--run-dir", str(self.run_dir)]
        self._node += ["--sysfs", str(self.sysfs), "--procfs", str(self.cgroups.procfs)]
        self._node += ["--node-name", "n1", "--metrics-listen", "", "--observe", "off"]
        self._program, self._options = tuple(program), [*self._node, "--log-format", "json"]
        self._log = folder / "log"
        self._process: Process | None = None

    def start(self, pulse: int | None = None) -> None:
        """pulse: where its signs of life go to, for a program without a supervisor."""
        handed = () if pulse is None else (pulse,)
        environment = os.environ | ({PULSE: str(pulse)} if handed else {})
        with self._log.open("ab") as log:
            if self._program == ENFORCER:
                self._process = forked.enforcer(["run", *self._options], log, environment)
            else:
                command = [sys.executable, "-m", *self._program, *self._options]
                self._process = subprocess.Popen(command, stderr=log, env=environment, pass_fds=handed)
        until(lambda: self.status().get("registered"), f"the runtime to be followed: {self._log.read_text()}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)
            assert "Traceback" not in self._log.read_text(), self._log.read_text()

    def close(self) -> None:
        self.stop()
        self.runtime.stop()

    def status(self) -> dict[str, Any]:
        """Once it answers: on a busy machine that may take longer than people wait."""
        return until(self._answer, "an answer")

    def _answer(self) -> dict[str, Any]:
        try:
            return ask(self.run_dir)
        except NobodyAnswersError:
            return {}

    def release(self) -> dict[str, Any]:
        return ask(self.run_dir, "release")

    def kill_bypass(self) -> None:
        """kill -9; its supervisor starts it again."""
        assert self._process is not None
        os.kill(children(self._process.pid)["bypass"], signal.SIGKILL)

    def doctor(self) -> tuple[int, dict[tuple[str, str], str]]:
        """Its exit status, and its last word on each topic by grade."""
        done = command("doctor", "--json", *self._node)
        return done.returncode, {(load["topic"], load["grade"]): load["text"] for load in json.loads(done.stdout)}

    def said(self, event: str) -> list[dict[str, str]]:
        """What the log has of an event."""
        lines = (line for line in self._log.read_text().splitlines() if line.startswith("{"))
        return [record for record in map(json.loads, lines) if record["event"] == event]

    def member(self, name: str = "m", annotations: dict[str, str] | None = None, **options: Any) -> str:
        """A pod of the group with one running container; its id."""
        return self.runtime.run(self.runtime.run_pod(name, GROUP | (annotations or {})), **options)

    def cpus(self, container: str) -> str:
        return self.cgroups.cpuset(self.runtime.path(container))[0]

    def pinned(self, container: str) -> str:
        return until(lambda: self.cpus(container), f"{container} to be pinned")
