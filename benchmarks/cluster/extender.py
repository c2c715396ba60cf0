"""The extender as a real process: started, killed, asked, and its CPU and memory read from procfs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standins.scheduler.extender_client import ExtenderClient, ExtenderError

PATIENCE_S = 120.0
"""How long the extender may take to start or to learn; a loaded machine needs a tenth of that."""

TICKS = os.sysconf("SC_CLK_TCK")


class ExtenderGone(RuntimeError):
    """It does not start, or ended by itself."""


@dataclass(slots=True)
class ExtenderProcess:
    """Its ports stay the same from one start to the next."""

    folder: Path
    kubeconfig: Path
    options: Sequence[str] = ()
    http: str = "127.0.0.1:0"
    grpc: str = "127.0.0.1:0"
    _process: subprocess.Popen[bytes] | None = None
    _worker: int = 0
    _cpu_before: float = 0.0
    _peak_before: int = 0

    def start(self) -> None:
        ready = self.folder / "extender.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "extender.main", "--listen", self.http, "--grpc-listen", self.grpc]
        command += ["--kubeconfig", str(self.kubeconfig), "--ready-file", str(ready), *self.options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
        with (self.folder / "extender.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        process = self._process
        until(lambda: ready.exists() or process.poll() is not None, "the extender does not start")
        if process.poll() is not None:
            raise ExtenderGone((self.folder / "extender.log").read_text()[-2000:])
        found = json.loads(ready.read_text())
        self.http, self.grpc, self._worker = found["http"], found["grpc"], found["pid"]

    def kill(self) -> None:
        """As when its node loses power: kill -9, the arbiter first, so that it starts no other worker."""
        if self._process is None:
            return
        self._cpu_before, self._peak_before = self.usage()
        self._process.kill()
        with suppress(ProcessLookupError):
            os.kill(self._worker, signal.SIGKILL)
        self._process.wait()
        self._process = None
        until(lambda: not Path(f"/proc/{self._worker}").exists(), "the extender's worker does not end")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
                return
            self.kill()

    def usage(self) -> tuple[float, int]:
        """CPU seconds since the first start, and the peak RSS in bytes of its processes together."""
        if self._process is None:
            return self._cpu_before, self._peak_before
        pids = [self._process.pid, self._worker]
        return self._cpu_before + sum(map(_cpu, pids)), max(self._peak_before, sum(map(_peak, pids)))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def live(self) -> int:
        """How many nodes' enforcers it hears."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=PATIENCE_S) as answer:
            found = re.search(r'^numakin_extender_nodes\{live="true"\} (\S+)$', answer.read().decode(), re.MULTILINE)
        return int(float(found[1])) if found else 0

    def known(self) -> dict[str, Any]:
        """What it has learned, in a form that does not depend on when: nodes' placements, groups' members."""
        nodes = {one["node"]: one["fingerprint"] for one in self.get("/api/v1/nodes")["nodes"] if one["live"]}
        groups = {
            one["group"]: sorted((member["uid"], member["node"], member["numa_nodes"]) for member in one["members"])
            for one in self.get("/api/v1/groups")["groups"]
        }
        return {"nodes": nodes, "groups": groups}

    def edges(self) -> int:
        """Directed edges between workloads that it has learned."""
        return int(self.get("/api/v1/graph")["edges_known"])

    def running(self, workloads: Collection[str]) -> int:
        """Pods of these, as it last took them in."""
        found = self.get("/api/v1/graph")["workloads"]
        return sum(one["replicas"] for one in found if one["workload"] in workloads)

    def planned(self) -> set[str]:
        """Workloads for which it keeps seats."""
        return {one["workload"] for one in self.get("/api/v1/plans")["workloads"]}

    def relearned(self, before: Mapping[str, Any], nodes: int) -> tuple[float, float]:
        """Seconds until it hears half of the nodes again, and until it knows all that it knew before."""
        begin = time.monotonic()
        until(lambda: self.live() >= nodes / 2, "the extender does not hear half of the nodes again")
        half = time.monotonic() - begin
        until(lambda: self.live() >= nodes and self.known() == before, "the extender does not know what it knew before")
        return half, time.monotonic() - begin


@dataclass(slots=True)
class TimedClient:
    """kube-scheduler's client; remembers how long each answer took, in seconds, by verb and number of nodes offered.

    errors: what went wrong; kube-scheduler (with `ignorable: true`) goes on without the extender then, as this does.
    """

    client: ExtenderClient
    seconds: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)

    def close(self) -> None:
        self.client.close()

    def filter(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> list[str]:
        with self._timed("filter", len(nodes)):
            return self.client.filter(pod, nodes)
        return list(nodes)

    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        with self._timed("prioritize", len(nodes)):
            return self.client.prioritize(pod, nodes)
        return {}

    @contextmanager
    def _timed(self, verb: str, offered: int) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        except ExtenderError as error:
            self.errors.append(str(error))
        self.seconds[verb, offered].append(time.perf_counter() - begin)


def until(done: Callable[[], bool], otherwise: str) -> None:
    """ExtenderGone when it is not done in time."""
    if not within(done, PATIENCE_S):
        raise ExtenderGone(otherwise)


def within(done: Callable[[], bool], patience_s: float) -> bool:
    """Whether it is done in time; an extender that does not answer yet is asked again."""
    deadline = time.monotonic() + patience_s
    while True:
        with suppress(urllib.error.URLError, ConnectionError):
            if done():
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)


def _cpu(pid: int) -> float:
    """Seconds, user and system."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
