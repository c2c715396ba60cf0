"""The enforcer on a real runtime without NRI: what bypass mode nominations of pods, read back from the kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine
from tests.enforcer.bypass.following import ENFORCER, HURRIED

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


@pytest.fixture(scope="module")
def runtime_without_nri(installation: Installation) -> Iterator[RealRuntime]:
    running = installation.runtime(nri=False)
    try:
        running.start()
        assert not running.nri_socket.exists()
        yield running
    finally:
        running.destroy()


@pytest.fixture
def runtime(runtime_without_nri: RealRuntime) -> Iterator[RealRuntime]:
    yield runtime_without_nri
    runtime_without_nri.kubelet.end_all_pods()


def following(
    runtime: RealRuntime, machine: SplitMachine, folder: Path, program: Sequence[str] = ENFORCER
) -> Iterator[RunningEnforcer]:
    """In bypass mode."""
    bypass = ("--mode", "bypass", "--cri-socket", f"unix://{runtime.socket}", "--sysfs", str(machine.sysfs))
    running = (
        ForkedEnforcer(folder, runtime.nri_socket, *bypass)
        if program == ENFORCER
        else RunningEnforcer(folder, runtime.nri_socket, *bypass, program=program)
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def enforcer(runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    yield from following(runtime, machine, tmp_path)


@pytest.fixture
def hurried(runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[RunningEnforcer]:
    """For what comes every ten seconds."""
    yield from following(runtime, machine, tmp_path, HURRIED)


def run(runtime: RealRuntime, pod: str, group: str = "", **more: str) -> int:
    """A pod with one container, in `group` if that is given; the container's pid."""
    annotations = {"group.numakin.io": group, **more} if group else {}
    sandbox = runtime.kubelet.run_pod(pod, annotations=annotations)
    return runtime.kubelet.pid(runtime.kubelet.run(sandbox, resources=SMALL))


def pinned(pid: int, machine: SplitMachine) -> str:
    """Its half of the machine, once it has one."""
    return until(lambda: kernel.allowed(pid).cpus in machine.halves and kernel.allowed(pid).cpus, f"{pid} to be pinned")


def test_members_of_a_group_share_a_numa_node_and_another_group_gets_the_emptier(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    cart = run(runtime, "cart", "shop")
    home = pinned(cart, machine)
    checkout, stranger = run(runtime, "checkout", "shop"), run(runtime, "db", "bank")
    assert pinned(checkout, machine) == home
    assert pinned(stranger, machine) == machine.halves[1 - machine.halves.index(home)]
    for pid in (cart, checkout, stranger):
        assert kernel.allowed(pid) == kernel.cpuset(pid)
    containers = until(enforcer.status, "the enforcer to answer")["containers"]
    (shown,) = [container for container in containers if container["pod"] == "default/cart"]
    assert any(reason.startswith("late: ") for reason in shown["reasons"])


def test_a_pod_that_has_not_opted_in_is_never_touched(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    plain = run(runtime, "plain")
    untouched = kernel.cpuset(plain)
    pinned(run(runtime, "cart", "shop"), machine)
    assert kernel.cpuset(plain) == untouched
    assert kernel.allowed(plain).cpus == machine.whole


def test_a_killed_enforcer_pins_on_its_return_what_it_missed_and_knows_its_own_work(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    own = {"cpus.numakin.io": "exclusive"}
    whole_cpu = cri.LinuxContainerResources(cpu_shares=1024)
    sandbox = runtime.kubelet.run_pod("db", annotations={"group.numakin.io": "bank", **own})
    exclusive = runtime.kubelet.pid(runtime.kubelet.run(sandbox, resources=whole_cpu))
    until(lambda: enforcer.log_records("cpuset written"), "the cpuset to be written")
    before = kernel.cpuset(exclusive)
    enforcer.kill()
    missed = run(runtime, "cart", "shop")
    assert kernel.allowed(missed).cpus == machine.whole
    enforcer.start()
    assert pinned(missed, machine)
    assert kernel.cpuset(exclusive) == before
    assert not enforcer.log_records("yielded"), "what it wrote before is its own"


@pytest.mark.parametrize("ends", [RealRuntime.stop, RealRuntime.kill], ids=["restarted", "crashed"])
def test_it_follows_a_runtime_that_comes_back(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine, ends: Callable[[RealRuntime], None]
) -> None:
    before = run(runtime, "cart", "shop")
    home = pinned(before, machine)
    ends(runtime)
    until(lambda: enforcer.status().get("registered") is False, "the enforcer to miss its runtime")
    runtime.start()
    after = run(runtime, "payment", "shop")
    assert pinned(after, machine) == home
    assert kernel.cpuset(before).cpus == home
    assert until(enforcer.status, "the enforcer to answer")["registered"]


def test_it_yields_where_somebody_else_writes_the_cpuset(
    runtime: RealRuntime, hurried: RunningEnforcer, machine: SplitMachine
) -> None:
    sandbox = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
    container = runtime.kubelet.run(sandbox, resources=SMALL)
    pid = runtime.kubelet.pid(container)
    other = machine.halves[1 - machine.halves.index(pinned(pid, machine))]
    until(lambda: hurried.log_records("cpuset written"), "the enforcer to know what it wrote")
    runtime.kubelet.update(container, cri.LinuxContainerResources(cpuset_cpus=other))
    until(lambda: hurried.log_records("yielded"), "the enforcer to see it")
    assert kernel.cpuset(pid).cpus == other
    assert until(hurried.status, "the enforcer to answer")["counts"]["yielded"] == 1


def test_a_cpuset_that_the_kernel_refuses_is_counted_and_left_alone(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    """On cgroup v1 a cgroup can't have less than one below it."""
    enforcer.kill()
    pid = run(runtime, "cart", "shop")
    folder = kernel.cgroup(pid, "cpuset")
    if not (folder / "cpuset.memory_migrate").exists():
        pytest.skip("cgroup v2 lets every cpuset be written")
    below = folder / "nested"
    below.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):
        (below / file).write_text((folder / file).read_text())
    enforcer.start()
    until(lambda: enforcer.status().get("counts", {}).get("refused"), "the refusal to be counted")
    (output,) = enforcer.log_records("cpuset refused; the container is left alone")
    assert os.strerror(16) in output["why"]
    assert kernel.cpuset(pid).cpus == machine.whole
    assert pinned(run(runtime, "payment", "bank"), machine), "others are pinned as before"
    below.rmdir()


def test_release_gives_back_what_the_containers_parents_have(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    pid = run(runtime, "cart", "shop")
    pinned(pid, machine)
    assert enforcer.ask("release")["released"] == 1
    assert kernel.allowed(pid).cpus == machine.whole
    later = run(runtime, "payment", "shop")
    until(lambda: len(enforcer.log_records("cpuset written")) >= 1, "the pin")
    assert kernel.allowed(later).cpus == machine.whole


def test_a_second_enforcer_over_nri_says_so_and_leaves(runtime: RealRuntime, enforcer: RunningEnforcer) -> None:
    status, output = enforcer.try_another("--mode", "nri")
    assert status == 1
    assert "another" in output


def test_containers_are_pinned_soon_after_their_start(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    for number in range(5):
        pinned(run(runtime, f"cart-{number}", "shop"), machine)
    until(lambda: len(enforcer.log_records("cpuset written")) >= 5, "each pin to be logged")
    late = [int(log_record["ms_after_start"]) for log_record in enforcer.log_records("cpuset written")]
    print(f"{runtime.kubelet.version()}: pinned {sorted(late)} ms after the start")
