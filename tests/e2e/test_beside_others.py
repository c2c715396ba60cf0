"""The enforcer on a real containerd beside another NRI plugin that sets cpusets: no container ever fails for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer
from tests.e2e.lab.neighbour_plugin import neighbour
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import CAP_SYS_RESOURCE, RealRuntime, has_capability
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


@pytest.mark.parametrize("index", ["00", "90"])
def test_a_member_starts_with_the_other_plugins_cpuset_and_is_left_to_it(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine, index: str
) -> None:
    """90 is what nri-plugins' charts install with, 00 what dra-driver-cpu and others do."""
    with neighbour(runtime.nri_socket, index, machine.halves[1]):
        pod = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
        pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL))
        assert kernel.cpuset(pid).cpus == machine.halves[1]
        assert kernel.allowed(pid).cpus == machine.halves[1]
        assert until(lambda: enforcer.log_records("yielded"), "it to be said")[0]["claimed_cpus"] == machine.halves[1]
        assert enforcer.status()["yielded"] == {"containers": 1, "members": 1, "conflicts": 0, "powerless": True}


def test_a_member_is_narrowed_within_the_other_plugins_cpuset_where_the_operator_allows_that(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    """By an update, as a creation takes a cpuset from one plugin alone; older runtimes take one with an answer."""
    enforcer = ForkedEnforcer(
        tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs), "--policy-options", "within-others"
    )
    try:
        enforcer.start()
        with neighbour(runtime.nri_socket, "00", machine.whole):
            pids = []
            for name in ("cart", "checkout", "payment"):
                pod = runtime.kubelet.run_pod(name, annotations={"group.numakin.io": "shop"})
                pids.append(runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL)))
            homes = until(
                lambda: len(now := {kernel.cpuset(pid).cpus for pid in pids}) == 1 and machine.whole not in now and now,
                "all of the group to be narrowed to one NUMA node",
            )
        assert homes <= set(machine.halves)
        assert enforcer.status()["yielded"]["containers"] == 0
    finally:
        enforcer.stop()


@pytest.fixture
def asked_first(runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    """The enforcer at an index before the other plugin's, as an operator may have set it."""
    options = ("--sysfs", str(machine.sysfs), "--plugin-index", "10")
    enforcer = ForkedEnforcer(tmp_path, runtime.nri_socket, *options)
    try:
        enforcer.start()
        yield enforcer
    finally:
        enforcer.stop()


def test_where_the_other_plugin_is_asked_later_the_second_try_starts_and_the_conflict_is_said(
    runtime: RealRuntime, asked_first: RunningEnforcer, machine: SplitMachine
) -> None:
    with neighbour(runtime.nri_socket, "90", machine.halves[1]):
        pod = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
        with pytest.raises(grpc.RpcError, match="both tried to set CPU"):
            runtime.kubelet.run(pod, resources=SMALL)
        pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL))
        assert kernel.cpuset(pid).cpus == machine.halves[1]
        status = until(lambda: (now := asked_first.status())["conflicts"] and now, "the conflict to be proven")
    assert status["conflicts"] == ["default/Pod/cart main"]
    assert (status["counts"]["never created"], status["counts"]["conflict"]) == (1, 1)
    (container,) = status["containers"]
    assert "another NRI plugin that is asked after numakin sets the cpuset too" in container["reasons"][0]


def test_a_start_that_fails_is_no_conflict_and_the_next_is_pinned(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    pod = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
    with pytest.raises(grpc.RpcError, match="/nowhere"):
        runtime.kubelet.run(pod, command=("/nowhere",), resources=SMALL)
    pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL, attempt=1))
    until(lambda: kernel.cpuset(pid).cpus in machine.halves, "it to be pinned")
    assert enforcer.status()["conflicts"] == []
    replica = runtime.kubelet.run_pod("cart-2", annotations={"group.numakin.io": "shop"})
    assert kernel.cpuset(runtime.kubelet.pid(runtime.kubelet.run(replica, resources=SMALL))).cpus in machine.halves


def test_a_pod_of_a_vm_runtime_is_left_open_and_that_is_said_once(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    """The lab's handler of that name runs containers as any other: what the runtime tells of it is what is tried."""
    if runtime.title == "CRI-O" and not has_capability(CAP_SYS_RESOURCE):
        pytest.skip(
            "CRI-O gives this handler's pods a pause process with a low OOM score, which takes CAP_SYS_RESOURCE"
        )
    for name in ("cart", "checkout"):
        pod = runtime.kubelet.run_pod(name, annotations={"group.numakin.io": "shop"}, handler="kata-lab")
        pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL))
        assert kernel.allowed(pid).cpus == machine.whole
    said = "containers of a runtime of virtual machines are left open: their cpuset would size the machine"
    until(lambda: len(enforcer.status()["containers"]) == 2, "both to be decided")
    assert [record["handler"] for record in enforcer.log_records(said)] == ["kata-lab"]


def test_the_doctor_leaves_no_error_in_the_runtimes_log(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    before = len(runtime.log.read_text(errors="replace").splitlines())
    options = ["--nri-socket", str(runtime.nri_socket), "--sysfs", str(machine.sysfs)]
    command = [sys.executable, "-m", "enforcer", "doctor", "--json", *options]
    printed = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False).stdout
    assert {
        "topic": "NRI",
        "grade": "good",
        "text": f"the container runtime listens at {runtime.nri_socket}",
        "command": "",
    } in json.loads(printed)
    enforcer = ForkedEnforcer(tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        enforcer.start()  # connections are taken in their order
    finally:
        enforcer.stop()
    new = runtime.log.read_text(errors="replace").splitlines()[before:]
    assert not [line for line in new if "level=error" in line and ("nri" in line.lower() or "plugin" in line)]
