"""The simulated cluster: its parts by themselves, and a small one with a real extender."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.cluster import scenarios
from benchmarks.cluster.best import reachable
from benchmarks.cluster.control.extender import MeasuredExtender
from benchmarks.cluster.driver import Plan
from benchmarks.cluster.load import Instance, Replica, locality, talks
from benchmarks.cluster.nodes.audit import Confined, overcommitments
from benchmarks.cluster.nodes.observers import Calls, reported_flows
from benchmarks.cluster.nodes.population import NodeSpec, Other
from benchmarks.cluster.result import percentile
from benchmarks.cluster.simulation import simulated
from benchmarks.graphs.app import app
from lab.standins.machines import MACHINES
from lab.standins.patience import PATIENCE_S

PATIENT = ("--patience", "20", "--hold", "3600")
"""No group is split for want of time on a busy machine."""

SMALL = Plan(nodes=6, seed=7, burst=30, lockstep=True, kubelet_s=PATIENCE_S, extender_options=PATIENT)

XEON = MACHINES["xeon-e5-2680v4-in-turn"].machine
"""Two NUMA nodes of 14 CPUs."""


@pytest.mark.parametrize(
    ("containers", "over"),
    [
        pytest.param([(0b01, 14_000), (0b10, 14_000)], [], id="full"),
        pytest.param([(0b01, 14_000), (0b01, 1)], [0b01], id="one-node"),
        pytest.param([(0b01, 10_000), (0b11, 18_000)], [], id="the-wide-one-has-room-beside"),
        pytest.param([(0b01, 14_000), (0b11, 14_001)], [0b11], id="nowhere-to-go"),
    ],
)
def test_a_numa_node_is_over_committed_when_those_confined_to_it_ask_for_more_than_it_has(containers, over):
    rows = [Confined(mask, cpu_milli, 0) for mask, cpu_milli in containers]
    assert [overcommitment.numa_nodes for overcommitment in overcommitments("n", XEON, rows)] == over


def test_a_cpu_that_two_containers_have_for_themselves_is_over_committed():
    rows = [Confined(0b01, 2000, 0, own=0b0101), Confined(0b01, 2000, 0, own=0b0100)]
    assert [
        (overcommitment.resource, overcommitment.asked, overcommitment.room)
        for overcommitment in overcommitments("n", XEON, rows)
    ] == [("exclusive CPUs", 3, 2)]


CALLS = Calls("c", "10.0.0.1", "s", "10.96.0.1", bytes=200, count=7)


@pytest.mark.parametrize(
    ("homes", "ends"),
    [
        pytest.param({"c": "n1", "s": "n1"}, {"n1": ("c", "s", True)}, id="one-node-counts-once"),
        pytest.param(
            {"c": "n1", "s": "n2"},
            {"n1": ("c", "10.96.0.1:8080", False), "n2": ("10.0.0.1:8080", "s", True)},
            id="the-client-sees-the-service-alone",
        ),
        pytest.param({"s": "n2"}, {"n2": ("10.0.0.1:8080", "s", True)}, id="the-clients-node-is-lost"),
    ],
)
def test_observers_tell_calls_as_each_end_sees_them(homes, ends):
    result = reported_flows([CALLS], homes)
    assert {node: (flows[0].source, flows[0].target, flows[0].by_server) for node, flows in result.items()} == ends
    for there, back in result.values():
        assert (there.source, there.target) == (back.target, back.source)
        assert (there.bytes, there.messages, back.messages) == (100, 7, 7)


@pytest.mark.parametrize(
    ("milli", "others", "best"),
    [
        pytest.param(7000, (), 1.0, id="both-fit-one-numa-node"),
        pytest.param(7001, (), 0.0, id="both-fit-none"),
        pytest.param(7000, (Other("x", 0, 1),), 1.0, id="the-other-one-is-free"),
        pytest.param(7000, (Other("x", 0, 1), Other("y", 1, 1)), 0.0, id="somebody-else-is-on-each"),
    ],
)
def test_the_best_is_what_the_roomiest_numa_nodes_can_hold_together(milli, others, best):
    pair = Instance("shop", app("pair", [("a", milli, 1), ("b", milli, 1)], [("a", "b", 100.0)]))
    assert reachable([NodeSpec("n", "xeon-e5-2680v4-in-turn", others)], pair.replicas()) == best


def test_only_a_pair_within_one_same_numa_node_is_local():
    pair = Instance("shop", app("pair", [("a", 100, 1), ("b", 100, 3)], [("a", "b", 300.0)]))
    caller, *called = pair.replicas()
    places = dict(zip(called, [("n1", "0"), ("n1", "0-1"), ("n2", "0")], strict=True))
    assert locality([caller, *called], {caller: ("n1", "0"), **places}) == pytest.approx(1 / 3)
    assert locality([caller, *called], {caller: ("n1", "0-1"), **places}) == 0


def test_calls_are_spread_over_the_replicas_and_never_to_oneself():
    ring = Instance("shop", app("ring", [("a", 100, 2)], [("a", "a", 100.0)]))
    first, other = ring.replicas()
    assert [(talk.source, talk.target) for talk in talks([first, other])] == [(first, other), (other, first)]


def test_replicas_of_two_revisions_are_one_workload():
    (old,), (new,) = (Instance("shop", app("x", [("a", 100, 1)], [])).replicas(revision) for revision in (1, 2))
    assert old.workload == new.workload
    assert old.name != new.name
    assert isinstance(new, Replica)


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.99, 4), (0.0, 1)])
def test_percentiles_are_values_that_occurred(share, value):
    assert percentile([4, 1, 3, 2], share) == value


@pytest.mark.thorough
def test_a_small_cluster_over_commits_nothing_and_the_same_seed_gives_the_same_placements(tmp_path):
    result = []
    for run, played in {
        "first": [scenarios.steady, scenarios.burst, scenarios.enforcer_restarts],
        "second": [scenarios.steady, scenarios.burst, scenarios.node_loss, scenarios.extender_restart],
    }.items():
        (tmp_path / run).mkdir()
        result.append(simulated(tmp_path / run, SMALL, lambda _: None, played))
    first, second = result
    assert [first.over_commitments, second.over_commitments] == [0, 0]
    assert [finding.placements for finding in first.findings[:2]] == [
        finding.placements for finding in second.findings[:2]
    ]
    assert [first.errors, second.errors] == [(), ()]
    assert first.findings[2].figures == {"cpusets changed": 0}
    steady, burst = first.findings[:2]
    assert steady.pods > 100
    assert burst.pods == 30
    assert burst.locality == 1.0
    assert steady.nominations.kept + burst.nominations.kept == steady.pods + burst.pods


@pytest.mark.thorough
def test_no_small_group_is_split_though_nobody_waits_for_a_binding(tmp_path):
    """The stand-in scheduler draws lots among the best, and binds later than it scores the next pod."""
    plan = Plan(nodes=6, seed=7, extender_options=PATIENT)
    result = simulated(tmp_path, plan, lambda _: None, [scenarios.small_groups])
    assert result.findings[0].pods == 680
    assert set(result.findings[0].figures.values()) == {0.0}
    assert result.errors == ()


def test_what_the_extender_takes_is_what_its_process_takes(tmp_path: Path):
    extender = MeasuredExtender(tmp_path, ("--no-kube",))
    extender.start()
    try:
        before = _resident(extender.pid)
        _, peak = extender.usage()
        assert before <= peak <= _resident(extender.pid)
    finally:
        extender.kill()


def _resident(pid: int) -> int:
    """The most bytes that a process had in memory at one time."""
    (line,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return 1024 * int(line)
