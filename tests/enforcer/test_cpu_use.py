"""Members that use more CPU than they ask for, in real cgroups: the real program counts the next one by it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from enforcer.machine.cgroup import CPU_TIME_CONTROLLER, CgroupTree
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.records import Container
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.running import Enforcer

REPLICAS = 3

SOON = {"numakin.placement.traffic.cpu_use.ENOUGH": 5}
"""Windows of a second that are enough, where it else takes a minute of them."""

GROUP = {"group.numakin.io": "shop"}
LABELS = {"pod-template-hash": "6d4cf"}


@pytest.fixture
def cpu_cgroups() -> Path:
    """Where cgroups are whose CPU time is counted."""
    folder = CgroupTree.discover().folder("/", CPU_TIME_CONTROLLER)
    if folder is None or os.geteuid() != 0:
        pytest.skip("no cgroup whose CPU time is counted can be made here")
    return folder


COMPUTES = """
import os, time
with open(f"{path}/cgroup.procs", "w") as members:
    members.write(str(os.getpid()))
while True:
    until = time.monotonic() + 0.001
    while time.monotonic() < until:
        pass
    time.sleep(0.05)
"""
"""Twenty thousandths of a CPU, where its pod asks for one."""


@contextmanager
def computing(top: Path, container: Container) -> Iterator[None]:
    """A real cgroup where the runtime says that the container's is, with a process that computes now and then."""
    path = top / container.message().linux.cgroups_path.lstrip("/")
    made = [folder for folder in (path, *path.parents) if top in folder.parents and not folder.exists()]
    path.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-SE", "-c", f"path = {str(path)!r}{COMPUTES}"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
        until(lambda: not (path / "cgroup.procs").read_text(), "the cgroup to be empty")
        for folder in made:
            folder.rmdir()


def test_a_replica_counts_as_what_its_siblings_were_seen_to_use(
    enforcer: Enforcer, runtime: Runtime, cpu_cgroups: Path
) -> None:
    enforcer.constants = SOON
    enforcer.start("--window-s", "1", "--observe", "off")
    runtime.wait_for_plugin(PATIENCE_S)

    def run(number: int) -> Container:
        uid = f"uid-web-{number}-{os.getpid()}"
        pod = runtime.run_pod(f"web-6d4cf-x2x{number}", "ns", uid, GROUP, LABELS)
        return runtime.run_container(pod, "app", cpu_request=0.001)

    def counted(number: int) -> bool:
        reasons = [
            row["reasons"] for row in enforcer.status()["containers"] if row["pod"] == f"ns/web-6d4cf-x2x{number}"
        ]
        return any(
            reason.startswith("counted as ") and "its workload's pods use that" in reason for reason in reasons[0]
        )

    with ExitStack() as stack:
        for number in range(REPLICAS):
            stack.enter_context(computing(cpu_cgroups, run(number)))
        assert not counted(0)
        tried = iter(range(REPLICAS, 1000))

        def next_counts() -> bool:
            number = next(tried)
            run(number)
            return counted(number)

        until(next_counts, "a new replica to be counted by what others use", pause_s=1.0)
