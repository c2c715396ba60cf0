"""Messages of the sizes at which runtimes break: what must still work on a real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

TTRPC_LIMIT = 4 << 20


@pytest.mark.parametrize("size", [4096, 4097, 8193, 1 << 20])
def test_an_answer_of_that_many_bytes_pins(runtime: RealRuntime, machine: SplitMachine, size: int) -> None:
    cpus = machine.halves[1]
    command = [sys.executable, "-m", "tests.e2e.lab.padding_plugin", str(runtime.nri_socket), cpus, str(size)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout is not None
        try:
            next(line for line in plugin.stdout if line == "synchronized\n")
            container = runtime.kubelet.run(runtime.kubelet.run_pod("a"))
            assert int(plugin.stdout.readline()) == size
            assert kernel.cpuset(runtime.kubelet.pid(container)).cpus == cpus
            assert plugin.poll() is None, "the runtime keeps the plugin"
        finally:
            plugin.terminate()


@pytest.mark.timeout(300)
def test_a_synchronize_over_4_mib_pins_every_member(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    """Older runtimes send it as one message over ttrpc's limit, newer ones in parts. As large as the API server takes a
    pod's annotations, and the kernel a variable.
    """
    pods, annotation, variable = 12, "a" * (250 << 10), "e" * (120 << 10)
    assert pods * (len(annotation) + len(variable)) > TTRPC_LIMIT
    kubelet, pids = runtime.kubelet, []
    for number in range(pods):
        pod = kubelet.run_pod(f"pod-{number}", annotations={"group.numakin.io": "crowd", "large": annotation})
        small = cri.LinuxContainerResources(cpu_shares=10)
        container = kubelet.run(pod, resources=small, environment={"LARGE": variable})
        pids.append(kubelet.pid(container))
    enforcer = ForkedEnforcer(tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs))
    try:
        enforcer.start()
        until(lambda: {kernel.cpuset(pid).cpus for pid in pids} <= set(machine.halves), "every container to be pinned")
        assert len({kernel.cpuset(pid) for pid in pids}) == 1, "all are members of one group"
        late = kubelet.run_pod("late", annotations={"group.numakin.io": "crowd"})
        pid = kubelet.pid(kubelet.run(late))
        assert kernel.cpuset(pid) == kernel.cpuset(pids[0]), "the runtime keeps the enforcer"
    finally:
        enforcer.stop()
