"""The lab itself: what the other tests here rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.runtime import RealRuntime


@pytest.mark.runtime
def test_a_containers_cpuset_is_read_back_from_the_kernel(runtime: RealRuntime) -> None:
    last = str(max(map(int, kernel.online_cpus().replace("-", ",").split(","))))
    pod = runtime.kubelet.run_pod("a")
    container = runtime.kubelet.run(pod, resources=cri.LinuxContainerResources(cpuset_cpus=last))
    pid = runtime.kubelet.pid(container)
    assert kernel.cpuset(pid).cpus == last
    assert kernel.allowed(pid).cpus == last


@pytest.mark.runtime
@pytest.mark.parametrize("ends", [RealRuntime.stop, RealRuntime.kill], ids=["stopped", "killed"])
def test_containers_outlive_their_containerd(runtime: RealRuntime, ends: Callable[[RealRuntime], None]) -> None:
    pod = runtime.kubelet.run_pod("a")
    container = runtime.kubelet.run(pod)
    pid = runtime.kubelet.pid(container)
    ends(runtime)
    runtime.start()
    assert runtime.kubelet.pid(container) == pid
