"""Where a newcomer's kin draw it."""

from __future__ import annotations

from collections import Counter

import pytest

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.decide.kin_share import peers_of, weight_by_home
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, filled, nodes, settle

KUNPENG = machines.KUNPENG_920
"""Four NUMA nodes of 32 CPUs: 0 and 1 are near each other, 2 and 3 likewise."""


def outgrown() -> Occupancy:
    """Group a fills NUMA node 0, its neighbour is group b's, the others are empty."""
    before = filled(KUNPENG, asks("a0", 32, group="shop/a"))
    return settle(KUNPENG, before, asks("b0", 2, group="shop/b"), Kin(expected=nodes("1")))[1]


def test_a_group_that_outgrows_its_numa_node_leaves_the_next_to_the_group_that_lives_there():
    decision = decide(KUNPENG, outgrown(), asks("a1", 2, group="shop/a"), Kin())
    assert decision.numa_nodes == nodes("2"), "1 is nearer, and b's"


def test_where_nobody_else_lives_the_nearest_is_next():
    before = filled(KUNPENG, asks("a0", 32, group="shop/a"))
    before = settle(KUNPENG, before, asks("b0", 2, group="shop/b"), Kin(expected=nodes("2")))[1]
    assert decide(KUNPENG, before, asks("a1", 2, group="shop/a"), Kin()).numa_nodes == nodes("1")


def test_who_is_known_to_talk_goes_near_by_all_the_same():
    decision = decide(KUNPENG, outgrown(), asks("a1", 2, group="shop/a"), Kin({"a0": 5.0}))
    assert decision.numa_nodes == nodes("1")


def test_a_shared_numa_node_is_home_to_all_who_live_there():
    before = settle(KUNPENG, outgrown(), asks("a1", 2, group="shop/a"), Kin(expected=nodes("1")))[1]
    decision = decide(KUNPENG, before, asks("a2", 2, group="shop/a"), Kin())
    assert decision.numa_nodes == nodes("1"), "its own members are there too"


@pytest.mark.parametrize("kin", [Kin(), Kin({"a0": 2.0, "a1": 0.5, "b0": 1.0})], ids=["a group", "known to talk"])
@pytest.mark.parametrize("who", ["a0", "a1", "new"])
def test_the_peers_that_are_counted_by_home_are_those_one_by_one(kin: Kin, who: str):
    """But for itself, where it has a place already; one of them on all four NUMA nodes."""
    before = filled(KUNPENG, *(asks(pod, cpu, group="shop/a") for pod, cpu in (("a0", 100), ("a1", 2), ("a2", 2))))
    occupancy = filled(KUNPENG, asks("b0", 1, group="shop/b"), occupancy=before)
    one_by_one = Counter[int]()
    for peer, weight in peers_of(occupancy, asks(who, group="shop/a"), kin):
        one_by_one[peer.numa_nodes.mask] += weight
    assert one_by_one
    assert weight_by_home(occupancy, asks(who, group="shop/a"), kin) == one_by_one
