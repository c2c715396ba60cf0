"""Exclusive CPUs on a real containerd: two CPUs as two NUMA nodes, read back from the kernel."""

from __future__ import annotations

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.cri import Pod
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime


def run(runtime: RealRuntime, pod: str, milli: int, **annotations: str) -> tuple[Pod, str, int]:
    """Its sandbox, its container, and that one's pid."""
    keys = {f"{key}.numakin.io": value for key, value in annotations.items()}
    sandbox = runtime.kubelet.run_pod(pod, annotations=keys)
    resources = cri.LinuxContainerResources(cpu_shares=milli * 1024 // 1000)
    container = runtime.kubelet.run(sandbox, resources=resources)
    return sandbox, container, runtime.kubelet.pid(container)


def test_who_fits_nowhere_is_off_exclusive_cpus_and_comes_home_when_they_are_free(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    sandbox, _, pid = run(runtime, "own", 1000, group="shop", cpus="exclusive")
    own = kernel.cpuset(pid).cpus
    rest = machine.halves[1 - machine.halves.index(own)]
    _, _, busy = run(runtime, "busy", 950, group="bank")
    _, _, web = run(runtime, "web", 900, group="shop")
    assert kernel.cpuset(busy).cpus == rest
    assert kernel.allowed(web).cpus == rest, "off the exclusive CPU, though it fits nowhere"

    runtime.kubelet.end_pod(sandbox.id)
    # The end of a sandbox is answered without updates; the end of the next member's container has them.
    _, short, _ = run(runtime, "short", 10, group="short")
    runtime.kubelet.stop(short)
    until(lambda: kernel.allowed(web).cpus == own, "the member that was left open to be at home")
    assert kernel.cpuset(busy).cpus == rest


def test_a_stable_cpuset_stays_what_it_is_when_exclusive_ones_come(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    _, _, stable = run(runtime, "stable", 100, group="shop", cpus="shared-stable")
    home = kernel.cpuset(stable).cpus
    _, _, own = run(runtime, "own", 1000, group="shop", cpus="exclusive")
    assert kernel.cpuset(own).cpus == machine.halves[1 - machine.halves.index(home)], "beside it nothing is to be had"
    assert kernel.cpuset(stable).cpus == kernel.allowed(stable).cpus == home
