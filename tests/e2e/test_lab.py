"""The lab itself: what the other tests here rely on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import built, kernel, place
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.runtimes import installations


def test_what_can_not_be_built_before_tests_is_said_and_no_reason_not_to_run_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", built.__name__, "emulated"]
    environment = {**os.environ, "PATH": str(tmp_path), "NUMAKIN_CACHE": str(tmp_path)}
    done = subprocess.run(command, cwd=place.REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    told = [line.split(": needs ")[0] for line in done.stderr.splitlines()]
    assert told == [*(each.name for each in installations()), "the emulated machine"]


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
