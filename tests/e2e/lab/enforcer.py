"""The enforcer as a real process, attached to a runtime of the lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from enforcer.cli.status import NobodyAnswersError, NotFinishedError, ask
from lab.standins.patience import PATIENCE_S, until
from tests import forked
from tests.e2e.lab.idle import idle_procfs
from tests.e2e.lab.place import REPOSITORY
from tests.titled import children

if TYPE_CHECKING:
    from lab.standins.extender import Process


class RunningEnforcer:
    """`numakin-enforcer run`; `start()` may follow `stop()` or `kill()`."""

    def __init__(
        self, folder: Path, nri_socket: Path, *options: str, program: Sequence[str] = ("enforcer", "run")
    ) -> None:
        """program: what runs, with the same options."""
        self.run_dir = folder / "run"
        self.log = folder / "numakin.process.log"
        self._options = [
            "--nri-socket", str(nri_socket), "--run-dir", str(self.run_dir), "--node-name", "lab", "--metrics-listen", "",
            "--log-format", "json", "--procfs", str(idle_procfs(folder)), *options,
        ]  # fmt: skip
        self._command = [sys.executable, "-m", *program, *self._options]
        self._process: Process | None = None

    def start(self, patience_s: float = PATIENCE_S, *options: str) -> None:
        """Returns when the runtime has taken it as a plugin. Raises TimeoutError with the end of its log.

        options: more of them, until it is stopped.
        """
        with self.log.open("ab") as log:
            self._process = self._begun(log, *options)
        self.wait_registered(patience_s)

    def _begun(self, log: BinaryIO, *options: str) -> Process:
        return subprocess.Popen(
            [*self._command, *options],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def wait_registered(self, patience_s: float = PATIENCE_S) -> None:
        try:
            until(lambda: self.status().get("registered"), "the enforcer to be registered with the runtime", patience_s)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log_end()}") from None

    def status(self) -> dict[str, Any]:
        """What `numakin-enforcer status --json` prints; {} while nobody answers."""
        try:
            return ask(self.run_dir)
        except NobodyAnswersError:
            return {}

    def _gone(self) -> bool:
        """One that has not answered in time is still there."""
        try:
            ask(self.run_dir)
        except NotFinishedError:
            return False
        except NobodyAnswersError:
            return True
        return False

    def ask(self, role: str) -> dict[str, Any]:
        """The running enforcer's answer, such as to "release"."""
        return ask(self.run_dir, role)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            until(self._gone, "the killed enforcer's hook to be gone")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """The hook answers nothing, though its connection stays open."""
        hook = self._hook()
        os.kill(hook, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(hook, signal.SIGCONT)

    def try_another(self, *options: str) -> tuple[int, str]:
        """Runs a second one beside it, to its end: exit status, and what it said."""
        command = [*self._command, *options]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout + done.stderr

    def log_records(self, event: str) -> list[dict[str, Any]]:
        """Lines of its log with that event, oldest first."""
        lines = (line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("{"))
        return [record for record in map(json.loads, lines) if record["event"] == event]

    def _hook(self) -> int:
        assert self._process is not None
        return children(self._process.pid)["hook"]

    def log_end(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class ForkedEnforcer(RunningEnforcer):
    """Forked from a process that has imported it (tests/forked.py): its imports are most of what a start takes. It is
    executed where a runtime launches it, beside real kubelets of this machine and in benchmarks.
    """

    def _begun(self, log: BinaryIO, *options: str) -> Process:
        return forked.enforcer(["run", *self._options, *options], log, os.environ)
