"""Child processes that end with us: each in a process group of its own, killed by the kernel when this process dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lab.standins.extender import Begin
from lab.standins.extender import Process as Begun
from lab.standins.patience import PATIENCE_S

GRACE_S = 15.0
"""After SIGTERM, before its process group is killed."""

LOG_END = 3000
"""Characters of a log that an error shows."""


class NotUp(RuntimeError):
    """A program of the cluster did not come up, or ended by itself; the text holds the end of its log."""


def executed(*command: str) -> Begin:
    """Starts this command, the arguments after it."""

    def begin(arguments: Sequence[str], log: BinaryIO, environment: Mapping[str, str]) -> Begun:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command, *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
        )  # fmt: skip

    return begin


class Process:
    """One program, with a log that all its starts share. start() may follow end() or kill(). begin: starts it as the
    leader of a process group that ends with us.
    """

    def __init__(self, name: str, begin: Begin, arguments: Sequence[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._begin, self._arguments = begin, arguments
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
        self._process: Begun | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = self._begin(self._arguments, log, self._environment)

    def until(self, ready: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Waits until `ready`. NotUp when it ends before, or takes too long."""
        deadline = time.monotonic() + patience_s
        while not ready():
            if not self.running:
                raise NotUp(f"{self.name} ended by itself: {self.log}\n{self.log_end()}")
            if time.monotonic() > deadline:
                raise NotUp(f"{self.name} is not ready after {patience_s:g} s: {self.log}\n{self.log_end()}")
            time.sleep(0.05)

    def end(self) -> None:
        """SIGTERM, and after GRACE_S the whole process group is killed."""
        if self.running:
            self.signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                assert self._process is not None
                self._process.wait(GRACE_S)
        self.kill()

    def kill(self) -> None:
        """kill -9 of all its processes."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # one that leads no group yet
        self._process.wait()
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def log_end(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_END:]


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
