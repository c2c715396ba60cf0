"""Pods that talk, inside the emulated machine: nginx and wrk in its containerd's containers, beside an enforcer whose
probes are always on.
"""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.standins.patience import PATIENCE_S, until
from numakin.wire import cri_pb2 as cri
from tests.e2e.guest import web
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import NODE_NETWORK, SLEEP, Kubelet, Pod
from tests.e2e.lab.enforcer import ForkedEnforcer

NRI_SOCKET = "/run/nri/nri.sock"
METRICS = "127.0.0.1:16862"
WINDOW_S = 5
POLL_S = 0.5  # a question costs the emulated machine a good part of a second

MEMORY_LIMIT = 64 << 20

# nginx and wrk come from the machine: the image has busybox alone.
LIBRARIES = {"/usr": "/usr", **{f"/{name}": f"/usr/{name}" for name in ("lib", "lib64") if Path("/usr", name).exists()}}
CONNECTIONS, PAUSE_MS = 2, 100


@dataclass(frozen=True, slots=True)
class Talker:
    """A pod of one container, in the namespace `default`."""

    name: str
    annotations: Mapping[str, str]
    cpu_milli: int
    labels: Mapping[str, str] = field(default_factory=dict)
    network: cri.NamespaceOption = field(default_factory=lambda: NODE_NETWORK)


PASSER_BY = Talker("passer-by", {"group.numakin.io": "auto"}, 100)


class Talkers:
    """folder: for the enforcer's files and theirs. options: more of the enforcer's."""

    def __init__(self, kubelet: Kubelet, folder: Path, *options: str) -> None:
        self.kubelet = kubelet
        observing = ("--metrics-listen", METRICS, "--observe", "1", "--window-s", str(WINDOW_S))
        self.enforcer = ForkedEnforcer(folder, Path(NRI_SOCKET), *observing, *options)
        self.pids: dict[str, int] = {}
        self.uids: dict[str, str] = {}
        self._folder = folder

    def seeing(self) -> None:
        """Returns once the enforcer sees traffic."""
        looked = "the enforcer to see traffic"
        until(lambda: traffic().get("collector", "none") != "none", looked, PATIENCE_S, pause_s=POLL_S)

    def serve(self, talker: Talker, port: int) -> str:
        """Creates a server, and returns where it listens, once it does."""
        pod = self._pod(talker)
        address = f"{self.kubelet.address(pod) or '127.0.0.1'}:{port}"
        folder = self._own(talker.name)
        self._run(talker, pod, web.server(folder, address), {str(folder): str(folder)})
        until(lambda: _listens(address), f"{talker.name} to listen", PATIENCE_S)
        return address

    def ask(self, talker: Talker, address: str) -> None:
        """Creates a client that asks a server from now on."""
        folder = self._own(talker.name)
        asking = web.client(folder, address, CONNECTIONS, 3600, PAUSE_MS)
        self._run(talker, self._pod(talker), asking, {str(folder): str(folder)})

    def answered(self, server: str) -> bool:
        """Whether anybody was."""
        log = self._own(server) / web.LOG
        return log.exists() and log.stat().st_size > 0

    def start(self, talker: Talker, command: Sequence[str] = SLEEP) -> Pod:
        pod = self._pod(talker)
        self._run(talker, pod, command, {})
        return pod

    def passer_by(self) -> None:
        """A member that comes and goes: a runtime of this age takes moves along with such."""
        self.kubelet.end_pod(self.start(PASSER_BY).id)

    def allowed(self, *talkers: str) -> dict[str, dict[str, str]]:
        """What the kernel says now."""
        return {name: asdict(kernel.allowed(self.pids[name])) for name in talkers}

    def moves(self) -> list[str]:
        """Each that was made: who, to which CPUs, and why."""
        records = self.enforcer.log_records("container moved")
        return [f"{record['pod']} to CPUs {record['cpus']}: {record['why']}" for record in records]

    def _pod(self, talker: Talker) -> Pod:
        pod = self.kubelet.run_pod(
            talker.name, annotations=talker.annotations, labels=talker.labels, namespaces=talker.network,
            memory_limit=MEMORY_LIMIT,
        )  # fmt: skip
        self.uids[talker.name] = pod.uid
        return pod

    def _run(self, talker: Talker, pod: Pod, command: Sequence[str], mounts: Mapping[str, str]) -> None:
        shares = cri.LinuxContainerResources(
            cpu_shares=talker.cpu_milli * 1024 // 1000, memory_limit_in_bytes=MEMORY_LIMIT
        )
        container = self.kubelet.run(pod, command=command, resources=shares, mounts={**LIBRARIES, **mounts})
        self.pids[talker.name] = self.kubelet.pid(container)

    def _own(self, talker: str) -> Path:
        folder = self._folder / talker
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def traffic() -> dict[str, Any]:
    return asked("/api/v1/traffic")


def asked(path: str) -> dict[str, Any]:
    """An answer of the enforcer's port, once there is one."""
    return until(lambda: _tried(path), f"an answer to {path}", PATIENCE_S, pause_s=POLL_S)


def _tried(path: str) -> dict[str, Any]:
    """{} without an answer."""
    try:
        with urllib.request.urlopen(f"http://{METRICS}{path}", timeout=PATIENCE_S) as answer:
            result: dict[str, Any] = json.load(answer)
    except OSError:
        return {}
    return result


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), 5):
        return True
    return False
