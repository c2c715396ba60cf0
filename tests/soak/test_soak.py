"""Whatever fails, no container does, nobody who has not opted in is touched, and no CPU is exclusive twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from numakin.placement.model.cpuset import CpuSet
from numakin.wire import nri_pb2 as nri
from tests.soak import invariants
from tests.soak.cluster import Cluster
from tests.soak.faults import FAULTS
from tests.soak.invariants import Invariant
from tests.soak.nodes import EmbeddedNode, Uplink
from tests.soak.pods import Kind, PodSpec, Running
from tests.soak.rounds import Soak

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the run folder is a file system of its own")


WAIT_S = 300.0
"""Only ends a test that failed."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, EmbeddedNode, ("n1", "n2")) as made:
        yield made


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_pods_come_and_go_under_every_fault_and_all_that_must_hold_holds(cluster: Cluster) -> None:
    soak = Soak(cluster, seed=7, faults={name: replace(row, weight=1) for name, row in FAULTS.items()})
    soak.settle()
    while set(soak.tally.tries) < set(FAULTS):
        soak.round()
    assert soak.tally.broken == []
    assert sum(soak.tally.created.values()) > len(FAULTS)


def test_a_machine_without_tun_devices_is_told_which_faults_it_can_not_have() -> None:
    """Its /dev/net is hidden from this one soak alone."""
    command = [sys.executable, "-m", "tests.soak", "--only", "packets"]
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs hidden /dev/net && exec "$@"', "sh"]
    done = subprocess.run([*hidden, *command], capture_output=True, text=True, timeout=WAIT_S, check=False)
    names = "network to the extender: packets scrambled, network to the extender: a third of the packets lost"
    assert f"left out: {names}: there is no /dev/net/tun\n" in done.stdout
    assert (done.returncode, done.stderr) == (2, "no fault has 'packets' in its name\n")


def test_the_checks_see_what_they_are_for(tmp_path: Path) -> None:
    """Cpusets written past the enforcer, on a node without one: none of them may go unseen."""
    with ExitStack() as stack:
        node = EmbeddedNode("n1", tmp_path, Uplink(), stack)
        node.enforcer.close()

        def started(name: str, kind: Kind, cpus: str) -> Running:
            container = node.run(PodSpec(name, kind, "cart", 2), name)
            resources = nri.LinuxResources(cpu=nri.LinuxCPU(cpus=cpus))
            node.runtime.update_container(node.runtime.containers[container], resources)
            return Running(container, PodSpec(name, kind, "cart", 2))

        own, other, shared = (
            started("own", Kind.EXCLUSIVE, "1-2"),
            started("other", Kind.EXCLUSIVE, "2-3"),
            started("shared", Kind.SHARED, "1,40"),
        )
        plain, open_wide = started("plain", Kind.PLAIN, "1"), started("open", Kind.SHARED, "")
        assert invariants.own_cpus(node, own) == CpuSet.parse("1-2")
        assert [broken.invariant for broken in invariants.exclusive(node, [own, other])] == [Invariant.TWICE]
        assert [broken.invariant for broken in invariants.untouched(node, [own, plain])] == [Invariant.TOUCHED]
        sentences = [broken.sentence for broken in invariants.settled(node, [own, shared, open_wide])]
        assert sentences == [
            "n1: CPUs 1 of own are also those of shared",
            "n1: shared has CPUs 1,40",
            "n1: open has CPUs without a pin",
        ]
