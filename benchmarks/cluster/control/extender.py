"""The extender as a real process: started, killed, asked, and its CPU and memory read from procfs."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.standins.extender import ExtenderGone, ExtenderProcess
from lab.standins.scheduler.extender_client import ExtenderClient, ExtenderError
from numakin.process.forked import cpu_s

PATIENCE_S = 120.0
"""How long the extender may take to start or to learn; a loaded machine needs a tenth of that."""


@dataclass(slots=True)
class MeasuredExtender(ExtenderProcess):
    """With what it used, over all its starts."""

    _cpu_before: float = 0.0
    _peak_before: int = 0

    def kill(self) -> None:
        self._cpu_before, self._peak_before = self.usage()
        ExtenderProcess.kill(self)

    def usage(self) -> tuple[float, int]:
        """CPU seconds since the first start, and the peak RSS in bytes."""
        if self.process is None:
            return self._cpu_before, self._peak_before
        return self._cpu_before + cpu_s(self.pid), max(self._peak_before, _peak(self.pid))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.web}{path}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def live(self) -> int:
        """How many nodes' enforcers report to it."""
        with urllib.request.urlopen(f"http://{self.web}/metrics", timeout=PATIENCE_S) as answer:
            sample = re.search(r'^numakin_extender_nodes\{live="true"\} (\S+)$', answer.read().decode(), re.MULTILINE)
        return int(float(sample[1])) if sample else 0

    def known(self) -> dict[str, Any]:
        """What it has learned, in a form that does not depend on when: nodes' placements, groups' members."""
        nodes = {node["node"]: node["fingerprint"] for node in self.get("/api/v1/nodes")["nodes"] if node["live"]}
        groups = {
            group["group"]: sorted((member["uid"], member["node"], member["numa_nodes"]) for member in group["members"])
            for group in self.get("/api/v1/groups")["groups"]
        }
        return {"nodes": nodes, "groups": groups}

    def edges(self) -> int:
        """Directed edges between workloads that it has learned."""
        return int(self.get("/api/v1/graph")["edges_known"])

    def running(self, workloads: Collection[str]) -> int:
        """Pods of these, as it last took them in."""
        rows = self.get("/api/v1/graph")["workloads"]
        return sum(row["replicas"] for row in rows if row["workload"] in workloads)

    def planned(self) -> set[str]:
        """Workloads for which it keeps reservations."""
        return {row["workload"] for row in self.get("/api/v1/plans")["workloads"]}

    def relearned(self, before: Mapping[str, Any], nodes: int) -> tuple[float, float]:
        """Seconds until half of the nodes report to it again, and until it knows all that it knew before."""
        begin = time.monotonic()
        until(lambda: self.live() >= nodes / 2, "fewer than half of the nodes report to the extender again")
        half = time.monotonic() - begin
        until(
            lambda: self.live() >= nodes and self.known() == before, "the extender has not learned again what it knew"
        )
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
    """Whether it is done in time; an extender that does not answer yet is polled again."""
    deadline = time.monotonic() + patience_s
    while True:
        polled_at = time.monotonic()
        with suppress(urllib.error.URLError, ConnectionError):
            if done():
                return True
        now = time.monotonic()
        if now > deadline:
            return False
        # With thousands of nodes an answer is work for the extender, which has other things to do.
        time.sleep(max(0.02, 4 * (now - polled_at)))


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak[1]) * 1024 if peak else 0
