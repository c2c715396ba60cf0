"""A running extender: the real program in a process of its own, for tests and benchmarks that play its peers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from standins.patience import PATIENCE_S
from standins.ports import free_address

GRACE_S = 20.0
"""After SIGTERM, before it is killed; in a cluster the kubelet gives 30 s."""


class ExtenderGone(RuntimeError):
    """It does not start, or ended by itself; the text is the end of its log."""


@dataclass(slots=True)
class ExtenderProcess:
    """numakin-extender with these options, on free ports that stay the same from one start to the next.

    It takes nothing from the environment but what `environment` adds. http, grpc: HOST:PORT.
    worker: the process that serves; the one that was started is its parent.
    """

    folder: Path
    options: Sequence[str] = ()
    http: str = field(default_factory=free_address)
    grpc: str = field(default_factory=free_address)
    process: subprocess.Popen[bytes] | None = None
    worker: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.folder / "extender.log"

    def start(self) -> None:
        """Up to where both ports answer."""
        ready = self.folder / "extender.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "extender.main", "--listen", self.http, "--grpc-listen", self.grpc]
        command += ["--ready-file", str(ready), *self.options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
        environment |= {"TMPDIR": str(self.folder), **self.environment}
        with self.log.open("ab") as log:
            self.process = process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise ExtenderGone(self.log.read_text()[-4000:])
            time.sleep(0.01)
        written = json.loads(ready.read_text())
        self.http, self.grpc, self.worker = written["http"], written["grpc"], written["pid"]

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """SIGTERM: as the kubelet does, which leaves it time. SIGQUIT: without the grace for callers. Returns its exit
        status; that of one that does not run is 0.
        """
        process = self.process
        if process is None:
            return 0
        process.send_signal(how)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None
        return process.returncode

    def kill(self) -> None:
        """As when its node loses power: kill -9, the parent first, so that it starts no other worker."""
        if self.process is None:
            return
        self.process.kill()
        with suppress(ProcessLookupError):
            os.kill(self.worker, signal.SIGKILL)
        self.process.wait()
        self.process = None
        while Path(f"/proc/{self.worker}").exists():
            time.sleep(0.01)
