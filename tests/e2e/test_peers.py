"""The matrix of docs/compatibility.md: the enforcer on a real runtime beside each other owner of cpusets, whichever starts
first, whichever restarts. No container fails in any cell, the other owner's cpusets stand, and the doctor says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.standins.patience import until
from numakin.wire import cri_pb2 as cri
from tests.e2e.lab import kernel
from tests.e2e.lab.enforcer import ForkedEnforcer, RunningEnforcer
from tests.e2e.lab.place import REPOSITORY
from tests.e2e.lab.runtime import RealRuntime
from tests.e2e.lab.split_machine import SplitMachine
from tests.peers import PEERS, Peer, beside

pytestmark = pytest.mark.runtime

SMALL = cri.LinuxContainerResources(cpu_shares=51)  # 50 millicores


class Node:
    """A runtime, the enforcer and one peer, whose CPUs are `theirs`."""

    def __init__(self, runtime: RealRuntime, enforcer: RunningEnforcer, peer: Peer, theirs: str) -> None:
        self.runtime, self.enforcer, self.theirs = runtime, enforcer, theirs
        self._peer, self._stack = peer, ExitStack()

    def start_peer(self) -> None:
        self._stack.enter_context(beside(self.runtime.nri_socket, self._peer, self.theirs))

    def stop_peer(self) -> None:
        self._stack.close()

    def run(self, pod: str, **annotations: str) -> int:
        """The pid of its container, which must start."""
        named = {f"{key}.numakin.io": value for key, value in annotations.items()}
        sandbox = self.runtime.kubelet.run_pod(pod, annotations=named)
        return self.runtime.kubelet.pid(self.runtime.kubelet.run(sandbox, resources=SMALL))

    def cpus(self, pid: int) -> str:
        assert kernel.allowed(pid).cpus == kernel.cpuset(pid).cpus
        return kernel.cpuset(pid).cpus

    def doctor(self) -> list[dict[str, str]]:
        """Its findings on cpusets."""
        options = ("--nri-socket", str(self.runtime.nri_socket), "--run-dir", str(self.enforcer.run_dir))
        command = [sys.executable, "-m", "enforcer", "doctor", "--json", *options]
        printed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout
        return [finding for finding in json.loads(printed) if finding["topic"] == "cpusets"]


def enforcer_again(enforcer: RunningEnforcer) -> None:
    enforcer.kill()
    enforcer.start()


def enforcer_restarts(node: Node) -> None:
    enforcer_again(node.enforcer)


def peer_restarts(node: Node) -> None:
    node.stop_peer()
    node.start_peer()


def runtime_restarts(node: Node) -> None:
    """Both come back to it; a container that starts before the peer has is not confined by it, and so is none of ours."""
    node.stop_peer()
    node.runtime.restart()
    node.start_peer()
    node.enforcer.wait_registered()


RESTARTS = (enforcer_restarts, peer_restarts, runtime_restarts)


@pytest.fixture(params=PEERS, ids=str)
def node(request: pytest.FixtureRequest, runtime: RealRuntime, machine: SplitMachine, tmp_path: Path) -> Iterator[Node]:
    enforcer = ForkedEnforcer(tmp_path, runtime.nri_socket, "--sysfs", str(machine.sysfs))
    made = Node(runtime, enforcer, request.param, machine.halves[1])
    try:
        yield made
    finally:
        made.stop_peer()
        enforcer.stop()


def test_beside_one_that_was_there_first_every_container_starts_with_its_cpuset(node: Node) -> None:
    node.start_peer()
    node.enforcer.start()
    pids = [node.run("first", group="shop")]
    for restarts in RESTARTS:
        restarts(node)
        pids += [node.run(f"after-{restarts.__name__}", group="shop"), node.run(f"plain-{restarts.__name__}")]
        assert {node.cpus(pid) for pid in pids} == {node.theirs}, restarts
    said = until(lambda: [it for it in node.doctor() if it["grade"] == "bad"], "the doctor to say it")
    assert "containers that opted in have their cpuset set by another owner" in said[0]["text"]


def test_one_that_comes_later_takes_over_and_every_container_starts(node: Node, machine: SplitMachine) -> None:
    node.enforcer.start()
    early = node.run("early", group="shop")
    node.theirs = machine.halves[1 - machine.halves.index(node.cpus(early))]
    node.start_peer()
    until(lambda: kernel.cpuset(early).cpus == node.theirs, "the peer to take over what runs")
    pids = [node.run("late", group="shop")]
    for restarts in RESTARTS:
        restarts(node)
        pids += [node.run(f"after-{restarts.__name__}", group="shop"), node.run(f"plain-{restarts.__name__}")]
        assert {node.cpus(pid) for pid in pids} == {node.theirs}, restarts
    assert node.cpus(early) == node.theirs, "what it took over it keeps"


def test_a_static_kubelet_s_cpusets_stand_whatever_restarts(
    runtime: RealRuntime, enforcer: RunningEnforcer, machine: SplitMachine
) -> None:
    """It gives a Guaranteed container its CPUs at the creation, and writes the rest to all others again and again."""
    kubelet = runtime.kubelet
    first = kubelet.run_pod("first", annotations={"group.numakin.io": "shop"})
    members = [kubelet.run(first, resources=SMALL)]
    own, rest = machine.halves
    exclusive = cri.LinuxContainerResources(cpu_shares=1024, cpu_quota=100_000, cpu_period=100_000, cpuset_cpus=own)
    owner = kubelet.pid(
        kubelet.run(kubelet.run_pod("own", annotations={"group.numakin.io": "shop"}), resources=exclusive)
    )
    for number, restart in enumerate((lambda: enforcer_again(enforcer), runtime.restart)):
        for member in members:
            kubelet.update(member, cri.LinuxContainerResources(cpuset_cpus=rest))
        restart()
        enforcer.wait_registered()
        assert {kernel.cpuset(kubelet.pid(member)).cpus for member in members} == {rest}
        assert kernel.cpuset(owner).cpus == own
        pod = kubelet.run_pod(f"late-{number}", annotations={"group.numakin.io": "shop"})
        members.append(kubelet.run(pod, resources=SMALL))
    for member in members:
        kubelet.update(member, cri.LinuxContainerResources(cpuset_cpus=rest))
    assert {kernel.allowed(kubelet.pid(member)).cpus for member in members} == {rest}
    assert enforcer.status()["yielded"]["containers"] > 0
