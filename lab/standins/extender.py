"""A running extender: the real program in a process of its own, for tests and benchmarks that play its peers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from extender.scheduler.verbs import VERBS
from lab.standins.patience import PATIENCE_S
from numakin.process.ports import free_address


class ExtenderGone(RuntimeError):
    """It does not start, or ended by itself; the text is the end of its log."""


class Process(Protocol):
    """What is needed of subprocess.Popen."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


Begin = Callable[[Sequence[str], BinaryIO, Mapping[str, str]], Process]
"""Starts the program with these arguments, its outputs into the file, in this environment."""


@dataclass(slots=True)
class ExtenderProcess:
    """numakin-extender with these options, on free ports that stay the same from one start to the next.

    It takes nothing from the environment but what `environment` adds. http: kube-scheduler's HOST:PORT. grpc, web,
    health: those of enforcers, people and probes. python: the interpreter that executes it, unless `begin` starts it in
    another way.
    """

    folder: Path
    options: Sequence[str] = ()
    http: str = field(default_factory=free_address)
    grpc: str = field(default_factory=free_address)
    web: str = field(default_factory=free_address)
    health: str = field(default_factory=free_address)
    process: Process | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    python: Sequence[str] = field(default_factory=lambda: (sys.executable,))
    begin: Begin | None = None

    @property
    def pid(self) -> int:
        """0 for one that does not run."""
        return self.process.pid if self.process is not None else 0

    @property
    def log(self) -> Path:
        return self.folder / "extender.log"

    def start(self) -> None:
        """Up to where its ports answer."""
        ready = self.folder / "extender.json"
        ready.unlink(missing_ok=True)
        arguments = ["--listen", self.http, "--grpc-listen", self.grpc, "--web-listen", self.web]
        arguments += ["--health-listen", self.health, "--ready-file", str(ready), *self.options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
        environment |= {"TMPDIR": str(self.folder), **self.environment}
        with self.log.open("ab") as log:
            self.process = process = (self.begin or self._execute)(arguments, log, environment)
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise ExtenderGone(self.log.read_text()[-4000:])
            time.sleep(0.01)
        written = json.loads(ready.read_text())
        self.http, self.grpc, self.web, self.health = (written[name] for name in ("http", "grpc", "web", "health"))

    def _execute(self, arguments: Sequence[str], log: BinaryIO, environment: Mapping[str, str]) -> Process:
        command = [*self.python, "-m", "extender.main", *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def port_of(self, path: str) -> str:
        """Where this path is asked for: kube-scheduler's verbs have a port of their own."""
        return self.http if path.lstrip("/") in VERBS else self.web

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """SIGTERM: as the kubelet does, which leaves it time. SIGQUIT: without the grace for callers. Returns its exit
        status; that of one that does not run is 0.
        """
        process = self.process
        if process is None:
            return 0
        process.send_signal(how)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None
        return process.returncode or 0

    def kill(self) -> None:
        """As when its node loses power: kill -9."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process = None
