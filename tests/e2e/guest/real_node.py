"""Runs inside the emulated NUMA machine: a real node of a cluster whose control plane runs on the machine outside.

    python3 -m tests.e2e.guest.real_node NODE EXTENDER LAST

A real kubelet, the machine's containerd, the enforcer; systemd is process 1 and has the cgroups. EXTENDER: HOST:PORT
of its gRPC. What the kubelet needs is in the folder that the machine outside shares as `node`. Once the container LAST
runs here, and each has touched its memory, prints a JSON object a line for each; then one for each thing that an operator
asks for, with where all are after it.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lab.cluster.credentials import EMULATOR_HOST
from lab.standins.patience import until
from tests.e2e.guest import logs, shares
from tests.e2e.guest.in_scopes import PATIENCE_S, POD, InScopes
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer

INSIDE = "10.0.2.15"
"""This machine, in the network that QEMU makes; EMULATOR_HOST is the loopback of the one outside."""

SHARED = "node"
KUBELET, KUBECONFIG, CONFIG = "kubelet", "kubeconfig", "kubelet.json"
RUNTIME = Path("/run/containerd/containerd.sock")


def main() -> None:
    node, extender, last = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    try:
        with ExitStack() as stack:
            _network()
            shares.mount(SHARED, folder / SHARED)
            shares.reached("booted")
            subprocess.run(["lab-containerd"], check=True, stdout=subprocess.DEVNULL)
            shares.reached("containerd runs and has the image")
            options = ("--extender", extender, "--observe", "off", "--node-name", node)
            enforcer = ForkedEnforcer(folder, Path("/run/nri/nri.sock"), *options)
            stack.callback(enforcer.stop)
            enforcer.start(PATIENCE_S)
            shares.reached("the runtime has the enforcer")
            until(lambda: _reports(enforcer), "the enforcer to report to the extender", PATIENCE_S)
            shares.reached("the extender has its reports")
            kubelet = stack.enter_context(_kubelet(folder, node))
            containers = InScopes(RUNTIME)
            rows = until(
                lambda: _all(containers, last, kubelet), f"the container {last} to run", PATIENCE_S, pause_s=1.0
            )
            shares.reached("all containers run")
            members = [row["pod"] for row in rows if not row["pod"].startswith(last)]
            for row in itertools.chain(rows, _operated(containers, enforcer, members)):
                print(json.dumps(row), flush=True)
    except BaseException:
        logs.show(folder)
        raise


def _operated(containers: InScopes, enforcer: RunningEnforcer, members: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What systemd and the enforcer are asked for, first while it pins over NRI, then while it writes cgroups itself."""
    for mode in ("nri", "bypass"):
        if mode == "bypass":
            enforcer.stop()
            enforcer.start(PATIENCE_S, "--mode", "bypass", "--cri-socket", f"unix://{RUNTIME}")
            _start_again(containers, members)
        yield from containers.released_and_resumed(mode, enforcer, members)
        yield from containers.looked_at_by_systemd(mode)
        shares.reached(f"all was asked for in {mode} mode")


def _start_again(containers: InScopes, members: Sequence[str]) -> None:
    """So that no unit has the cpuset of its creation (AllowedCPUs), as NRI gives it."""
    before = {pid for labels, pid in containers.running() if labels[POD] in members}
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    def there() -> bool:
        pids = [pid for labels, pid in containers.running() if labels[POD] in members]
        return len(pids) == len(members) and not before & set(pids) and containers.all_pinned(members)

    until(there, "the kubelet to start the members again", PATIENCE_S, pause_s=1.0)


def _reports(enforcer: RunningEnforcer) -> bool:
    return "1 extender receives reports" in enforcer.status().get("observer", {}).get("doing", "")


def _all(containers: InScopes, last: str, kubelet: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """What is known of the containers; empty while `last` is missing, or one has not touched its memory."""
    if (status := kubelet.poll()) is not None:
        raise ChildProcessError(f"the kubelet has ended, with status {status}")
    return containers.rows() if containers.has(last) else []


def _network() -> None:
    for command in (
        ("modprobe", "virtio_net"),
        ("ip", "address", "add", f"{INSIDE}/24", "dev", "eth0"),
        ("ip", "link", "set", "eth0", "up"),
        ("ip", "route", "add", "default", "via", EMULATOR_HOST),
    ):
        subprocess.run(command, check=True)


@contextmanager
def _kubelet(folder: Path, node: str) -> Iterator[subprocess.Popen[bytes]]:
    shared = folder / SHARED
    options = (
        f"--config={shared / CONFIG}", f"--kubeconfig={shared / KUBECONFIG}", f"--hostname-override={node}",
        f"--root-dir={folder / 'root'}", f"--container-runtime-endpoint=unix://{RUNTIME}", f"--node-ip={INSIDE}",
        *json.loads((shared / "options.json").read_text()),
    )  # fmt: skip
    with (folder / "kubelet.log").open("wb") as log:
        process = subprocess.Popen([shared / KUBELET, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
