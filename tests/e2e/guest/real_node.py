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
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from enforcer.machine.cgroup import CgroupTree
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
            members = [row["pod"] for row in rows if not row["pod"].startswith(last)]
            for row in itertools.chain(rows, _operated(enforcer, members)):
                print(json.dumps(row), flush=True)
    except BaseException:
        logs.show(folder)
        raise


def _operated(enforcer: RunningEnforcer, members: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What systemd and the enforcer are asked for, first while it pins over NRI, then while it writes cgroups itself."""
    for mode in ("nri", "bypass"):
        if mode == "bypass":
            enforcer.stop()
            enforcer.start(PATIENCE_S, "--mode", "bypass", "--cri-socket", f"unix://{RUNTIME}")
            _start_again(members)
        enforcer.ask("release")
        yield {"after": f"{mode}: release", "where": _where()}
        enforcer.ask("resume")
        until(lambda: _all_pinned(members), "all members to be pinned again", PATIENCE_S, pause_s=1.0)
        yield {"after": f"{mode}: resume", "where": _where()}
        for command in _of_an_operator():
            subprocess.run(["systemctl", *command], check=True)
        yield {"after": f"{mode}: systemctl", "where": _where()}
        _reached(f"all was asked for in {mode} mode")


def _start_again(members: Sequence[str]) -> None:
    """So that no unit has the cpuset of its creation (AllowedCPUs), as NRI gives it."""
    before = {pid for labels, pid in _running() if labels["io.kubernetes.pod.name"] in members}
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    def there() -> bool:
        pids = [pid for labels, pid in _running() if labels["io.kubernetes.pod.name"] in members and pid]
        return len(pids) == len(members) and not before & set(pids) and _all_pinned(members)

    until(there, "the kubelet to start the members again", PATIENCE_S, pause_s=1.0)


def _of_an_operator() -> Iterator[Sequence[str]]:
    """What makes systemd look at its units' cgroups again: a container's own and its pod's."""
    yield ("daemon-reload",)
    for _, pid in _running():
        scope = kernel.cgroup(pid, "cpuset")
        for unit in (scope.parent.name, scope.name):
            yield ("set-property", "--runtime", unit, "CPUWeight=50")
    yield ("daemon-reexec",)


def _where() -> dict[str, str]:
    """By pod, the CPUs that the kernel lets it have."""
    return {labels["io.kubernetes.pod.name"]: kernel.allowed(pid).cpus for labels, pid in _running()}


def _all_pinned(members: Sequence[str]) -> bool:
    where = _where()
    return all(where.get(pod, kernel.online_cpus()) != kernel.online_cpus() for pod in members)


def _running() -> list[tuple[Any, int]]:
    """The labels and first processes of those that run."""
    runtime = Kubelet(RUNTIME, "")
    try:
        found = [(container.labels, runtime.pid(container.id)) for container in runtime.containers()]
    finally:
        runtime.close()
    return [(labels, pid) for labels, pid in found if pid]


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
        containers = [
            (container.labels, runtime.pid(container.id), runtime.cgroups_path(container.id))
            for container in runtime.containers()
        ]
    finally:
        runtime.close()
    here = any(labels[NAME] == last for labels, *_ in containers)
    touched = all(pid and kernel.anonymous_memory(pid).total() >= TOUCHED for _, pid, _ in containers)
    return [_row(*container) for container in containers] if here and touched else []


def _row(labels: Any, pid: int, path: str) -> dict[str, Any]:
    """path: of its cgroup, as the runtime has it. read: what the enforcer reads there."""
    tree = CgroupTree.discover()
    cpuset = tree.cpuset(path)
    return {
        "pod": labels["io.kubernetes.pod.name"],
        "cgroup": asdict(kernel.cpuset(pid)),
        "allowed": asdict(kernel.allowed(pid)),
        "memory": kernel.anonymous_memory(pid),
        "path": path,
        "read": {
            "cpus": str(cpuset.cpus) if cpuset else None,
            "memory": tree.memory_by_numa_node(path),
            "cpu_seconds": tree.cpu_seconds(path),
            "pod": tree.has_pod(path, labels["io.kubernetes.pod.uid"]),
        },
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
