"""The lab itself: what the other tests here rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from proto import cri_pb2 as cri
from tests.e2e.lab import kernel, vm
from tests.e2e.lab.containerd import RealContainerd


@pytest.mark.runtime
def test_a_containers_cpuset_is_read_back_from_the_kernel(runtime: RealContainerd) -> None:
    last = str(max(map(int, kernel.online_cpus().replace("-", ",").split(","))))
    pod = runtime.kubelet.run_pod("a")
    container = runtime.kubelet.run(pod, resources=cri.LinuxContainerResources(cpuset_cpus=last))
    pid = runtime.kubelet.pid(container)
    assert kernel.cpuset(pid).cpus == last
    assert kernel.allowed(pid).cpus == last


@pytest.mark.runtime
@pytest.mark.parametrize("ends", [RealContainerd.stop, RealContainerd.kill], ids=["stopped", "killed"])
def test_containers_outlive_their_containerd(runtime: RealContainerd, ends: Callable[[RealContainerd], None]) -> None:
    pod = runtime.kubelet.run_pod("a")
    container = runtime.kubelet.run(pod)
    pid = runtime.kubelet.pid(container)
    ends(runtime)
    runtime.start()
    assert runtime.kubelet.pid(container) == pid


@pytest.mark.numavm
@pytest.mark.timeout(1200)
def test_the_emulated_machine_has_numa_nodes_and_runs_the_project(numavm: Callable[..., vm.Result]) -> None:
    script = "from proto import cri_pb2, cri_pb2_grpc; print('imports', cri_pb2.NODE)"
    result = numavm("2x4", ["bash", "-c", f'cat /sys/devices/system/node/node*/cpulist; python3 -c "{script}"'])
    assert result.status == 0, result.output + result.messages
    assert result.output.split("\n")[:3] == ["0-3", "4-7", "imports 2"]
