"""The enforcer on a real container runtime: what it makes of pods, read back from the kernel."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from lab.standins.kubelet import Kubelet
from lab.standins.patience import until
from numakin.placement.model.cpuset import CpuSet
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


def run(runtime: RealRuntime, pod: str, group: str = "") -> int:
    """A pod with one container, in `group` if that is given; the container's pid."""
    annotations = {"group.numakin.io": group} if group else {}
    sandbox = runtime.kubelet.run_pod(pod, annotations=annotations)
    return runtime.kubelet.pid(runtime.kubelet.run(sandbox, resources=SMALL))


def test_members_of_a_group_share_a_numa_node_and_another_group_gets_the_emptier(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    cart, checkout, stranger = (
        run(runtime, "cart", "shop"),
        run(runtime, "checkout", "shop"),
        run(runtime, "db", "bank"),
    )
    home = kernel.cpuset(cart).cpus
    assert home in machine.halves
    assert kernel.cpuset(checkout).cpus == home
    assert kernel.cpuset(stranger).cpus == machine.halves[1 - machine.halves.index(home)]
    for pid in (cart, checkout, stranger):
        assert kernel.allowed(pid) == kernel.cpuset(pid)


def test_a_pod_is_pinned_beside_the_device_that_the_kubelet_gave_it(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    """The runtime's word that the pod's sandbox runs has the kubelet asked, over its own API."""
    options = ("--sysfs", str(machine.sysfs), "--podresources-socket", str(tmp_path / "kubelet.sock"))
    enforcer = ForkedEnforcer(tmp_path / "enforcer", runtime.nri_socket, *options)
    with Kubelet(tmp_path / "kubelet.sock") as kubelet:
        kubelet.admit("default", "trainer", "main", "vendor.com/gpu", ("gpu-0", (1,)))
        try:
            enforcer.start()
            until(lambda: enforcer.status().get("devices"), "what the kubelet knows already to be told")
            kubelet.admit("default", "tuner", "main", "vendor.com/gpu", ("gpu-1", (1,)))
            pod = runtime.kubelet.run_pod("tuner", annotations={"group.numakin.io": "shop"})
            until(
                lambda: "default/tuner/main" in enforcer.status().get("devices", ()), "the new pod's device to be told"
            )
            pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL))
        finally:
            enforcer.stop()
    assert kernel.cpuset(pid).cpus == machine.halves[1]


def test_containers_that_ask_for_nothing_share_their_pod_s_exclusive_cpus(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    """As the kubelet sends a pod with resources of its own: its sandbox's, and the same again for each container."""
    own = cri.LinuxContainerResources(cpu_shares=1024, cpu_quota=100_000, cpu_period=100_000)
    annotations = {"group.numakin.io": "shop", "cpus.numakin.io": "exclusive"}
    sandbox = runtime.kubelet.run_pod("budget", annotations=annotations, resources=own)
    first, second = (
        runtime.kubelet.pid(runtime.kubelet.run(sandbox, name, resources=own)) for name in ("first", "second")
    )
    home = kernel.cpuset(first).cpus
    assert home in machine.halves
    assert kernel.cpuset(second).cpus == kernel.allowed(second).cpus == home
    assert kernel.cpuset(run(runtime, "neighbour", "bank")).cpus == machine.halves[1 - machine.halves.index(home)]


def test_a_pod_that_has_not_opted_in_is_never_touched(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    before = run(runtime, "before")
    run(runtime, "cart", "shop")
    after = run(runtime, "after")
    assert kernel.cpuset(before) == kernel.cpuset(after)
    assert kernel.allowed(before).cpus == kernel.allowed(after).cpus == machine.whole
    assert kernel.allowed(before).mems == kernel.allowed(1).mems


def test_a_killed_enforcer_pins_on_its_return_what_was_created_meanwhile_and_leaves_right_ones_alone(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    pinned = run(runtime, "cart", "shop")
    home = kernel.cpuset(pinned)
    before = len(until(lambda: enforcer.log_records("synchronized"), "the first synchronization to be logged"))
    enforcer.kill()
    missed, plain = run(runtime, "checkout", "shop"), run(runtime, "plain")
    assert kernel.allowed(missed).cpus == machine.whole, "the runtime goes on without us"
    assert kernel.cpuset(pinned) == home

    enforcer.start()
    until(lambda: kernel.cpuset(missed) == home, "the container created meanwhile to be pinned")
    assert kernel.cpuset(pinned) == home
    assert kernel.allowed(plain).cpus == machine.whole

    def updates() -> list[int]:
        return [log_record["updates"] for log_record in enforcer.log_records("synchronized")[before:]]

    # A busy machine may have it synchronized more than once.
    until(lambda: any(updates()), "what was changed to be logged")
    assert sum(updates()) == 1, "one container was wrong, and one was changed"


def test_a_container_whose_start_is_under_way_while_the_enforcer_registers_is_pinned_all_the_same(
    runtime: RealRuntime, enforcer: RunningEnforcer
) -> None:
    """The runtime takes our update for a container that is not running yet, and then starts it with the old cpuset."""
    home = kernel.cpuset(run(runtime, "cart", "shop"))
    enforcer.kill()
    pod = runtime.kubelet.run_pod("checkout", annotations={"group.numakin.io": "shop"})
    starting = runtime.kubelet.create(pod, resources=SMALL)
    with ThreadPoolExecutor(2) as threads, runtime.stalled_starts():
        started = threads.submit(runtime.kubelet.start, starting)
        runtime.wait_for_log(*runtime.starting(starting))
        registered = threads.submit(enforcer.start)
        if runtime.registers_meanwhile:
            registered.result()
    started.result()
    registered.result()
    pid = runtime.kubelet.pid(starting)
    until(lambda: kernel.cpuset(pid) == home, "the container to be pinned")


@pytest.mark.parametrize("ends", [RealRuntime.stop, RealRuntime.kill], ids=["restarted", "crashed"])
def test_the_enforcer_comes_back_to_a_runtime_that_comes_back(
    runtime: RealRuntime, enforcer: RunningEnforcer, ends: Callable[[RealRuntime], None]
) -> None:
    before = run(runtime, "cart", "shop")
    home = kernel.cpuset(before)
    ends(runtime)
    until(lambda: enforcer.status().get("registered") is False, "the enforcer to miss its runtime")
    runtime.start()
    meanwhile = run(runtime, "checkout", "shop")
    enforcer.wait_registered()
    after = run(runtime, "payment", "shop")
    assert kernel.cpuset(before) == home
    assert kernel.cpuset(after) == home
    until(lambda: kernel.cpuset(meanwhile) == home, "the container that may have come too early to be pinned")


def test_a_hanging_enforcer_delays_a_container_by_the_runtimes_patience_and_no_more(
    impatient_runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    enforcer = ForkedEnforcer(tmp_path, impatient_runtime.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        enforcer.start()
        pinned = run(impatient_runtime, "cart", "shop")
        until(lambda: kernel.cpuset(pinned).cpus in machine.halves, "the first container to be pinned")
        with enforcer.hanging():
            missed = run(impatient_runtime, "checkout", "shop")
            assert kernel.allowed(missed).cpus == machine.whole
        home = kernel.cpuset(pinned)
        until(lambda: kernel.cpuset(missed) == home, "the missed container to be pinned after the enforcer's return")
    finally:
        enforcer.stop()


def test_a_container_restarted_in_place_finds_its_cpus_again_before_the_old_one_is_removed(
    runtime: RealRuntime, enforcer: RunningEnforcer
) -> None:
    kubelet, whole_cpu = runtime.kubelet, cri.LinuxContainerResources(cpu_shares=1024)
    pod = kubelet.run_pod("cart", annotations={"group.numakin.io": "shop", "cpus.numakin.io": "exclusive"})
    first = kubelet.run(pod, resources=whole_cpu)
    held = kernel.cpuset(kubelet.pid(first))
    kubelet.stop(first)
    again = kubelet.run(pod, resources=whole_cpu, attempt=1)
    assert kernel.cpuset(kubelet.pid(again)) == held
    assert len(CpuSet.parse(held.cpus)) == 1


def test_a_container_that_fails_to_start_is_tried_again_with_exclusive_cpus(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    """The runtime tells plugins nothing of a start that fails, and the kubelet removes what failed much later. CRI-O
    fails the creation already, and tells nothing of that either.
    """
    kubelet, whole_cpu = runtime.kubelet, cri.LinuxContainerResources(cpu_shares=1024)
    pod = kubelet.run_pod("cart", annotations={"group.numakin.io": "shop", "cpus.numakin.io": "exclusive"})
    for attempt in range(2):
        with pytest.raises(grpc.RpcError, match="no such file or directory"):
            kubelet.run(pod, command=("/no/such/program",), resources=whole_cpu, attempt=attempt)
    own = kubelet.run(pod, resources=whole_cpu, attempt=2)
    assert kernel.cpuset(kubelet.pid(own)).cpus in machine.halves
    assert [entry["id"] for entry in enforcer.status()["containers"]] == [own]


def test_one_enforcer_per_node_a_second_one_says_so_and_leaves(runtime: RealRuntime, enforcer: RunningEnforcer) -> None:
    status, output = enforcer.try_another()
    assert status == 1
    assert "another" in output
    assert until(enforcer.status, "the first one to answer")["registered"]
