"""numakin-extender as a process beside the cluster, with the rights of its ServiceAccount and no others."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.cluster.processes import Process, executed
from lab.standins.extender import Begin
from numakin.process.ports import free_address

ANSWER_S = 30.0


class Extender:
    """On ports that stay the same from one start to the next. http, grpc, web: HOST:PORT of kube-scheduler's port, of
    enforcers' and of people's.
    """

    def __init__(
        self, name: str, folder: Path, kubeconfig: Path, options: Sequence[str] = (), begin: Begin | None = None
    ) -> None:
        """begin: how it is started, where not executed."""
        self.http, self.grpc, self.web, health = (free_address() for _ in range(4))
        self._ready = folder / f"{name}.json"
        arguments = [
            "--listen", self.http, "--grpc-listen", self.grpc,
            "--web-listen", self.web, "--health-listen", health,
            "--kubeconfig", str(kubeconfig), "--namespace", "numakin", "--ready-file", str(self._ready), *options,
        ]  # fmt: skip
        self.process = Process(name, begin or executed(sys.executable, "-m", "extender.main"), arguments, folder)

    def start(self) -> None:
        self._ready.unlink(missing_ok=True)
        self.process.start()
        self.process.until(self._ready.exists)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.web}{path}", timeout=ANSWER_S) as answer:
            return json.load(answer)

    def live(self) -> int:
        """How many nodes' enforcers report to it."""
        return sum(1 for node in self.get("/api/v1/nodes")["nodes"] if node["live"])

    def metric(self, name: str) -> float:
        """The sum of a metric's series; one series when it is named with its labels; 0 where there is none."""
        with urllib.request.urlopen(f"http://{self.web}/metrics", timeout=ANSWER_S) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} ")))
