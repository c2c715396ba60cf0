"""Runs inside the emulated NUMA machine: the enforcer beside a real CRI-O with crun, on cgroup v2 and systemd's driver.

    python3 -m tests.e2e.guest.crio_node

CRI-O is in the folder that the machine outside shares. Prints a JSON object a line for each container, then one for each
thing that it is asked for, with where all are after it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from enforcer.cli.status import answered
from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.guest import crio, logs, shares
from tests.e2e.guest.in_scopes import PATIENCE_S, InScopes
from tests.e2e.guest.world import MEMORY_LIMIT, TOUCHED, WAITS
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import RunningEnforcer

SHARED = "crio"
PARENT = "numakin.slice"

GROUPS = {"shop-1": "shop", "shop-2": "shop", "bank-1": "bank", "plain": ""}
"""By pod; the last one has not opted in."""

MEMBERS = [pod for pod, group in GROUPS.items() if group]

RESIZED = "shop-1"


class Node:
    """CRI-O and the enforcer, with a container in each pod."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        shares.mount(SHARED, folder / SHARED)
        self.kubelet: Kubelet = crio.start(folder / SHARED, PARENT)
        shares.reached("CRI-O runs and has the image")
        self.containers = InScopes(crio.SOCKET)
        self.enforcer = RunningEnforcer(folder, crio.NRI_SOCKET, "--observe", "off")
        stack.callback(self.enforcer.stop)
        self._ids: dict[str, str] = {}
        self.enforcer.start(PATIENCE_S)
        shares.reached("CRI-O has the enforcer")

    def run_all(self) -> None:
        """Anew, where they run already."""
        self.kubelet.end_all_pods()
        for pod, group in GROUPS.items():
            uid = str(uuid.uuid4())
            limit_memory(self.kubelet.pod_cgroup(uid))
            sandbox = self.kubelet.run_pod(pod, uid=uid, annotations={"group.numakin.io": group} if group else {})
            self._ids[pod] = self.kubelet.run(sandbox, command=WAITS, resources=resources(100))
        until(self.containers.rows, "all to touch their memory", PATIENCE_S, pause_s=1.0)
        until(lambda: self.containers.all_pinned(MEMBERS), "all members to be pinned", PATIENCE_S, pause_s=1.0)
        shares.reached("all containers run")

    def rows(self, mode: str) -> Iterator[dict[str, Any]]:
        yield from ({"mode": mode, **row} for row in self.containers.rows())
        until(self._counted, "the kernel to have counted their memory", PATIENCE_S, pause_s=1.0)
        yield {"mode": mode, "status": answered(self.enforcer.run_dir)}

    def resized(self) -> Iterator[dict[str, Any]]:
        """As the kubelet does it in place."""
        self.kubelet.update(self._ids[RESIZED], resources(200))
        yield {"after": "nri: resize", "where": self.containers.where()}

    def bypass(self) -> None:
        """The enforcer from now on; what runs stays as it is."""
        self.enforcer.stop()
        self.enforcer.start(PATIENCE_S, "--mode", "bypass", "--cri-socket", f"unix://{crio.SOCKET}")

    def _counted(self) -> bool:
        told = answered(self.enforcer.run_dir)["memory"]
        return len(told) == len(MEMBERS) and all(row["bytes"] >= TOUCHED for row in told)


def limit_memory(slice_: str) -> None:
    """Of a pod, as the kubelet makes its slice: its containers have limits, all of them."""
    unit = slice_.rpartition("/")[2]
    for command in (("set-property", "--runtime", unit, f"MemoryMax={MEMORY_LIMIT}"), ("start", unit)):
        subprocess.run(["systemctl", *command], check=True)


def resources(cpu_milli: int) -> cri.LinuxContainerResources:
    return cri.LinuxContainerResources(cpu_shares=cpu_milli * 1024 // 1000, memory_limit_in_bytes=MEMORY_LIMIT)


def found(node: Node) -> Iterator[dict[str, Any]]:
    node.run_all()
    yield from node.rows("nri")
    yield from node.resized()
    yield from node.containers.released_and_resumed("nri", node.enforcer, MEMBERS)
    yield from node.containers.looked_at_by_systemd("nri")
    node.bypass()
    yield from node.containers.released_and_resumed("bypass after nri", node.enforcer, MEMBERS)
    node.run_all()
    yield from node.rows("bypass")
    yield from node.containers.released_and_resumed("bypass", node.enforcer, MEMBERS)
    yield from node.containers.looked_at_by_systemd("bypass")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with ExitStack() as stack:
            for row in found(Node(stack, folder)):
                print(json.dumps(row), flush=True)
    except BaseException:
        logs.show(folder)
        raise


if __name__ == "__main__":
    main()
