"""The whole story of a decision."""

from __future__ import annotations

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.decide.explain import explain
from numakin.placement.model.live_usage import Live
from numakin.placement.optin.parsing import Policy
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, cpus, filled

SMALL = machines.SMALL


def told(machine, occupancy, request, kin=None):
    return [str(entry) for entry in explain(machine, occupancy, request, kin or Kin())[1]]


def test_it_is_the_same_decision_with_every_numa_node_weighed():
    before = filled(SMALL, asks("a", 3.5))
    decision, story = explain(SMALL, before, asks("b"), Kin())
    assert decision == decide(SMALL, before, asks("b"), Kin())
    assert [str(entry) for entry in story] == [
        "its kin are near 50%: NUMA node 1",
        "nearer to its kin NUMA node 0, 100%: short of CPU",
        "room left 75%: CPUs there that stay free",
        "memory free 7782 MiB: bound to NUMA node 1",
        "NUMA node 0 0.00: kin 1.00, room 1.00, empty 0.00, no CPU stays free, short of CPU",
        "NUMA node 1 0.62: kin 0.50, room 1.00, empty 0.75, 3 CPUs stay free",
    ]


def test_it_says_what_is_amiss():
    pressed = Occupancy(reserved=cpus("4-7"), live=Live(stalled={0: 0.5}))
    story = told(SMALL, pressed, asks("a", 1, devices=["1"]))
    assert "NUMA node 1 0.00: no CPU there may be used: reserved, or kept for one alone" in story
    assert any("devices elsewhere: 1, under memory pressure" in line for line in story)
    assert any("memory on a lower tier too" in line for line in told(machines.CXL, Occupancy(), asks("a", 1, 100)))


def test_a_wide_set_is_weighed_too():
    assert any(line.startswith("NUMA node 0-1 ") for line in told(SMALL, Occupancy(), asks("a", 6)))


def test_policy_none_has_a_short_story():
    assert told(SMALL, Occupancy(), asks("a", policy=Policy.NONE)) == ["policy none: CPUs and memory are left open"]
