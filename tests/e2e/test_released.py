"""Release on a real containerd, beside pods that come and go; and a kernel that refuses what a release, or an exclusive
neighbour, asks of a cgroup.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


def run(runtime: RealRuntime, pod: str, cpu_shares: int = 51, **annotations: str) -> int:
    """A pod with one container, opted in by `group`; the container's pid."""
    named = {f"{key}.numakin.io": value for key, value in annotations.items()}
    sandbox = runtime.kubelet.run_pod(pod, annotations=named)
    resources = cri.LinuxContainerResources(cpu_shares=cpu_shares)
    return runtime.kubelet.pid(runtime.kubelet.run(sandbox, resources=resources))


@pytest.fixture
def hurried(runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    """For what comes every ten seconds."""
    options = ("--sysfs", str(machine.sysfs))
    made = RunningEnforcer(tmp_path, runtime.nri_socket, *options, program=("tests.enforcer.hurried", "hook"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def nested(pid: int) -> Path:
    """A cgroup below a container's, as systemd or docker make them in one, with all that it has."""
    folder = kernel.cgroup(pid, "cpuset")
    if not (folder / "cpuset.memory_migrate").exists():
        pytest.skip("cgroup v2 lets every cpuset be written")
    below = folder / "nested"
    below.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):
        (below / file).write_text((folder / file).read_text())
    return below


def test_release_and_resume_beside_pods_that_come_and_go_hang_no_runtime(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    members = [run(runtime, f"member-{number}", group="shop") for number in range(3)]
    enough, faults = threading.Event(), list[Exception]()

    def come_and_go(name: str) -> None:
        try:
            while not enough.is_set():
                pod = runtime.kubelet.run_pod(name, annotations={"group.numakin.io": "shop"})
                runtime.kubelet.run(pod, resources=SMALL)
                runtime.kubelet.end_pod(pod.id)
        except Exception as fault:  # noqa: BLE001 - shown below
            faults.append(fault)

    clients = [threading.Thread(target=come_and_go, args=(f"client-{number}",)) for number in range(2)]
    for client in clients:
        client.start()
    try:
        for _ in range(3):
            answer = enforcer.ask("release")
            assert (answer["failed"], answer["error"]) == ([], "")
            assert answer["released"] >= len(members)
            assert {kernel.allowed(pid).cpus for pid in members} == {machine.whole}
            enforcer.ask("resume")
            until(lambda: all(kernel.allowed(pid).cpus in machine.halves for pid in members), "they are pinned again")
            enforcer.wait_registered()
    finally:
        enough.set()
        for client in clients:
            client.join()
    assert faults == []
    assert kernel.allowed(run(runtime, "later", group="shop")).cpus in machine.halves


def test_exclusive_cpus_that_the_kernel_leaves_to_another_are_not_called_exclusive(
    runtime: RealRuntime, hurried: RunningEnforcer, machine: SplitMachine
) -> None:
    """On cgroup v1 a cgroup can't have less than one below it, and the runtime says nothing of an answer's update."""
    hurried.ask("release")
    web = run(runtime, "web", group="shop")
    below = nested(web)
    hurried.ask("resume")
    until(lambda: "differs" in str(hurried.status()), "the difference to be told")
    assert kernel.cpuset(web).cpus == machine.whole
    own = run(runtime, "own", group="shop", cpus="exclusive", cpu_shares=1024)
    cpus = kernel.cpuset(own).cpus

    def said() -> str:
        rows = {row["pod"]: row for row in hurried.status().get("containers", [])}
        return "; ".join(rows["default/own"]["reasons"])

    until(lambda: f"CPUs {cpus} are NOT its own alone: default/web main could not be moved off them" in said(), "it")
    assert "shared with nobody" not in said()
    below.rmdir()
