"""The enforcer as a real process, attached to a runtime of the lab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from enforcer.ask import NobodyAnswersError, ask
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.waiting import until


class RunningEnforcer:
    """`numakin-enforcer run`; `start()` may follow `stop()` or `kill()`."""

    def __init__(self, folder: Path, nri_socket: Path, *options: str) -> None:
        self.run_dir = folder / "run"
        self.log = folder / "enforcer.log"
        self._command = [sys.executable, "-m", "enforcer.main", "run", "--nri-socket", str(nri_socket)]
        self._command += ["--run-dir", str(self.run_dir), "--node-name", "lab", "--metrics-listen", "", *options]
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, patience_s: float = 20.0) -> None:
        """Returns when the runtime has taken it as a plugin. Raises TimeoutError with the end of its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.wait_registered(patience_s)

    def wait_registered(self, patience_s: float = 20.0) -> None:
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

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            until(lambda: not self.status(), "the killed enforcer's hook to be gone")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def log_end(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
