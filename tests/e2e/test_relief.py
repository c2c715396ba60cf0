"""Members that use all of their NUMA node, on a real containerd: some are let out, without any event."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer
from tests.e2e.lab.idle import idle_procfs
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores
WORK = ("/bin/busybox", "sh", "-c", "while :; do :; done")
TICK_S = 0.2


@contextmanager
def in_use(procfs: Path, cpus: str) -> Iterator[None]:
    """Meanwhile these CPUs are always in use and the others never, as the kernel would say it, whatever else the
    machine is doing.
    """
    stat, ended = procfs / "stat", threading.Event()

    def tick() -> None:
        used = 0
        while not ended.wait(TICK_S):
            used += 20
            lines = [f"cpu{cpu} {used * (cpu in ids)} 0 0 {used * (cpu not in ids)} 0 0 0 0 0 0" for cpu in every]
            draft = stat.with_suffix(".draft")
            draft.write_text("\n".join(lines) + "\n")
            draft.replace(stat)

    every = [int(cpu) for cpu in re.findall(r"^cpu(\d+) ", stat.read_text(), re.MULTILINE)]
    ids = {cpu for cpu in every for low, _, high in (cpus.partition("-"),) if int(low) <= cpu <= int(high or low)}
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_members_that_fill_their_numa_node_are_let_out_and_a_newcomer_goes_elsewhere(
    runtime: RealRuntime, machine: SplitMachine, tmp_path: Path
) -> None:
    procfs = idle_procfs(tmp_path / "kernel")
    options = ("--sysfs", str(machine.sysfs), "--procfs", str(procfs))
    enforcer = ForkedEnforcer(tmp_path / "enforcer", runtime.nri_socket, *options)
    try:
        enforcer.start()
        pids = [member(runtime, f"m{at}") for at in range(4)]
        home = kernel.cpuset(pids[0]).cpus
        assert {kernel.cpuset(pid).cpus for pid in pids} == {home}
        with in_use(procfs, home):
            until(lambda: machine.whole in {kernel.cpuset(pid).cpus for pid in pids}, "some to be let out")
            late = member(runtime, "late", "/bin/busybox", "sleep", "1000")
        told = {row["pod"]: row for row in enforcer.status()["containers"]}
    finally:
        enforcer.stop()
    assert kernel.cpuset(late).cpus == machine.halves[1 - machine.halves.index(home)]
    for at, pid in enumerate(pids):
        row = told[f"default/m{at}"]
        assert kernel.allowed(pid).cpus == row["cpus"]
        assert bool(row["let_out"]) == (row["cpus"] == machine.whole)


def member(runtime: RealRuntime, pod: str, *command: str) -> int:
    sandbox = runtime.kubelet.run_pod(pod, annotations={"group.numakin.io": "shop"})
    return runtime.kubelet.pid(runtime.kubelet.run(sandbox, command=command or WORK, resources=SMALL))
