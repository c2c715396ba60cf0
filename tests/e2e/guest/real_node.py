"""Runs inside the emulated NUMA machine: a real node of a cluster whose control plane runs on the machine outside.

    python3 -m tests.e2e.guest.real_node NODE EXTENDER LAST

A real kubelet, the machine's containerd, the enforcer. EXTENDER: HOST:PORT of its gRPC. What the kubelet needs is in
the folder that the machine outside shares as `node`. Ends once the container LAST runs here, and each has touched
its memory; prints a JSON object a line for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.cluster.credentials import EMULATOR_HOST
from lab.standins.patience import until
from tests.e2e.guest import logs
from tests.e2e.guest.world import TOUCHED
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Kubelet
from tests.e2e.lab.enforcer import RunningEnforcer

INSIDE = "10.0.2.15"
"""This machine, in the network that QEMU makes; EMULATOR_HOST is the loopback of the one outside."""

SHARED = "node"
KUBELET, KUBECONFIG, CONFIG = "kubelet", "kubeconfig", "kubelet.json"
RUNTIME = Path("/run/containerd/containerd.sock")

NAME = "io.kubernetes.container.name"

PATIENCE_S = 1200.0
"""For one step: other work on the machine outside slows it as much as emulation does."""


def main() -> None:
    node, extender, last = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    try:
        with ExitStack() as stack:
            _network()
            _mount(folder / SHARED)
            _reached("booted")
            subprocess.run(["lab-containerd"], check=True, stdout=subprocess.DEVNULL)
            _reached("containerd runs and has the image")
            options = ("--extender", extender, "--observe", "off", "--node-name", node)
            enforcer = RunningEnforcer(folder, Path("/run/nri/nri.sock"), *options)
            stack.callback(enforcer.stop)
            enforcer.start(PATIENCE_S)
            _reached("the runtime has the enforcer")
            until(lambda: _reports(enforcer), "the enforcer to report to the extender", PATIENCE_S)
            _reached("the extender has its reports")
            kubelet = stack.enter_context(_kubelet(folder, node))
            rows = until(lambda: _all(last, kubelet), f"the container {last} to run", PATIENCE_S, pause_s=1.0)
            _reached("all containers run")
            for row in rows:
                print(json.dumps(row), flush=True)
    except BaseException:
        logs.show(folder)
        raise


def _reports(enforcer: RunningEnforcer) -> bool:
    return "1 extender receives reports" in enforcer.status().get("observer", {}).get("doing", "")


def _reached(what: str) -> None:
    """For whoever has to find out which step took so long."""
    print(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s after the start: {what}", flush=True)


def _all(last: str, kubelet: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """What is known of the containers; empty while `last` is missing, or one has not touched its memory."""
    if (status := kubelet.poll()) is not None:
        raise ChildProcessError(f"the kubelet has ended, with status {status}")
    runtime = Kubelet(RUNTIME, "")
    try:
        containers = [(container.labels, runtime.pid(container.id)) for container in runtime.containers()]
    finally:
        runtime.close()
    here = any(labels[NAME] == last for labels, _ in containers)
    touched = all(pid and kernel.anonymous_memory(pid).total() >= TOUCHED for _, pid in containers)
    return [_row(labels, pid) for labels, pid in containers] if here and touched else []


def _row(labels: Any, pid: int) -> dict[str, Any]:
    return {
        "pod": labels["io.kubernetes.pod.name"],
        "cgroup": asdict(kernel.cpuset(pid)),
        "allowed": asdict(kernel.allowed(pid)),
        "memory": kernel.anonymous_memory(pid),
    }


def _network() -> None:
    for command in (
        ("modprobe", "virtio_net"),
        ("ip", "address", "add", f"{INSIDE}/24", "dev", "eth0"),
        ("ip", "link", "set", "eth0", "up"),
        ("ip", "route", "add", "default", "via", EMULATOR_HOST),
    ):
        subprocess.run(command, check=True)


def _mount(folder: Path) -> None:
    folder.mkdir()
    options = "trans=virtio,version=9p2000.L,msize=512000,cache=loose"
    subprocess.run(["mount", "-t", "9p", "-o", options, SHARED, folder], check=True)


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
