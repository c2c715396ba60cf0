"""The plugins that are measured, as processes: numakin, and the least that can be written in Go and in Python."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window

WINDOWS = 10
"""The first ones may pass before the containers are known."""

PEERS = 4
"""Other pods that each pod exchanges traffic with."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """kinds: of containers that it is measured with, as the driver has them."""

    name: str
    kinds: tuple[str, ...]
    command: tuple[str, ...]
    socket: Path

    @property
    def argument(self) -> str:
        return f"{self.name}={self.socket}={','.join(self.kinds)}"


@dataclass(frozen=True, slots=True)
class Numakin:
    """The whole enforcer with recorded traffic to learn from; no kernel counters, so that a run needs no privileges.

    source: the folder whose code runs.
    """

    folder: Path
    sysfs: Path
    running: int
    source: Path

    @property
    def socket(self) -> Path:
        return self.folder / "nri.sock"

    def command(self, metrics: str) -> tuple[str, ...]:
        recording = self.folder / "recording"
        recording.write_text(_windows(self.running))
        options = {
            "nri-socket": self.socket,
            "run-dir": self.folder / "run",
            "sysfs": self.sysfs,
            "node-name": "bench",
            "metrics-listen": metrics,
            "replay": recording,
            "window-s": 1,
            "log-level": "warning",
        }
        return (sys.executable, "-m", "enforcer", "run", *(f"--{name}={value}" for name, value in options.items()))


def _windows(running: int) -> str:
    """Traffic of each running pod with some others."""
    random_peers = random.Random(1)
    uids = [f"00000000-0000-0000-0000-{900_000 + number:012}" for number in range(running)]
    flows = tuple(
        Flow(uid, peer, "tcp", random_peers.randrange(1_000, 1_000_000), random_peers.randrange(10, 1_000))
        for uid in uids
        for peer in random_peers.sample(uids, min(PEERS, len(uids)))
        if peer != uid
    )
    return "".join(Window(1.0, flows).to_json() + "\n" for _ in range(WINDOWS))


def learned(metrics: str) -> bool:
    """Whether the enforcer's observer has learned edges."""
    try:
        with urllib.request.urlopen(f"http://{metrics}/api/v1/traffic", timeout=5) as answer:
            return bool(json.load(answer)["edges"])
    except (urllib.error.URLError, OSError):
        return False


def processes(started: subprocess.Popen[bytes]) -> dict[str, int]:
    """Its process ids and those of its children, by name: supervisor, hook, observer."""
    pids = {"supervisor": started.pid}
    for child in Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split():
        named = re.search(
            rb"(?:numakin-|enforcer\.)(hook|observer|bypass)", Path(f"/proc/{child}/cmdline").read_bytes()
        )
        pids[named[1].decode()] = int(child)
    return pids


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process has. pss, rss: MiB."""

    pss: float
    rss: float
    descriptors: int


def usage(pids: dict[str, int]) -> dict[str, Usage]:
    """By name."""
    found = {}
    for name, pid in pids.items():
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss, rss = (int(re.search(rf"^{key}: +(\d+) kB", rollup, re.MULTILINE)[1]) / 1024 for key in ("Pss", "Rss"))
        found[name] = Usage(pss, rss, len(list(Path(f"/proc/{pid}/fd").iterdir())))
    return found
