"""The enforcer on a real containerd beside another NRI plugin that sets cpusets: no container ever fails for it."""

from __future__ import annotations

import pytest

from proto import cri_pb2 as cri
from standins.patience import until
from tests.e2e.lab import kernel
from tests.e2e.lab.containerd import RealContainerd
from tests.e2e.lab.enforcer import RunningEnforcer
from tests.e2e.lab.neighbour_plugin import neighbour
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


@pytest.mark.parametrize("index", ["00", "90"])
def test_a_member_starts_with_the_other_plugins_cpuset_and_is_left_to_it(
    runtime: RealContainerd, enforcer: RunningEnforcer, machine: SplitMachine, index: str
) -> None:
    """90 is what nri-plugins' charts install with, 00 what dra-driver-cpu and others do."""
    with neighbour(runtime.nri_socket, index, machine.halves[1]):
        pod = runtime.kubelet.run_pod("cart", annotations={"group.numakin.io": "shop"})
        pid = runtime.kubelet.pid(runtime.kubelet.run(pod, resources=SMALL))
        assert kernel.cpuset(pid).cpus == machine.halves[1]
    assert until(lambda: enforcer.log_records("yielded"), "it to be said")[0]["claimed_cpus"] == machine.halves[1]
