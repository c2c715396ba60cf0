"""Memory: bound while that can't kill, else near by first touch or by policy; lower tiers last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.decide.decide import Kin, MemoryPolicy, decide
from numakin.placement.model.live_usage import Live
from numakin.placement.optin.parsing import Memory, Policy
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, at, filled, nodes, settle

SMALL, CXL, GIB = machines.SMALL, machines.CXL, machines.GIB
MIB_PAGE = 2 << 20
# SMALL has 8 GiB on each of two NUMA nodes, 7782 MiB of them with the reserve kept

BOUND = "memory free 7782 MiB: bound to NUMA node 0"


@pytest.mark.parametrize(
    ("wishes", "free", "mems", "says"),
    [
        ({"memory": 2}, {}, "0", BOUND),
        ({"memory": 2}, {0: 4 * GIB}, "0", "memory free 3686 MiB: bound to NUMA node 0"),
        ({"memory": 1, "limit": 8}, {}, "", "memory free 7782 MiB: less than the 8192 MiB it may use: left open"),
        (
            {"memory": 1, "limit": 2},
            {0: 2 * GIB},
            "",
            "memory free 1638 MiB: less than the 2048 MiB it may use: left open",
        ),
        ({"memory": 1, "limit": None}, {}, "", "memory limit: none, so a binding could kill: left open"),
        ({"memory": 1, "mems": Memory.PREFER}, {}, "", "memory prefer: left open, first touch keeps it local"),
        ({"memory": 1, "limit": None, "mems": Memory.BIND}, {}, "0", BOUND),
        ({"memory": 1, "limit": 8, "mems": Memory.BIND}, {}, "0", BOUND),
    ],
)
def test_memory_is_bound_only_where_that_can_not_kill(wishes, free, mems, says):
    decision = decide(SMALL, Occupancy(live=Live(free)), asks("a", 1, **wishes), at("0"))
    assert decision.mems == nodes(mems)
    assert decision.memory_policy == (None if mems else MemoryPolicy("MPOL_PREFERRED_MANY", nodes("0")))
    assert says in decision.sentence


@pytest.mark.parametrize(
    ("wishes", "homes", "mems"),
    [
        ({"memory": 2}, "0", "0"),
        ({"memory": 1, "limit": 12}, "0", ""),
        ({"memory": 12}, "0,8", "0,8"),
        ({"memory": 1, "limit": 40, "mems": Memory.BIND}, "0", "0"),
    ],
    ids=["fits at home", "may use more than home has", "needs both homes", "by its own wish"],
)
def test_nobody_is_bound_to_a_devices_memory(wishes, homes, mems):
    decision = decide(machines.GPU_MEMORY, Occupancy(), asks("a", 1, **wishes), Kin())
    assert (decision.numa_nodes, decision.mems) == (nodes(homes), nodes(mems))


def test_a_devices_memory_makes_no_room():
    assert not decide(machines.GPU_MEMORY, Occupancy(), asks("a", 1, 20), Kin()).fits


def test_what_bound_pods_may_use_is_not_committed_twice():
    before = filled(SMALL, asks("a", 1, 1, limit=5))
    assert before.allocations["a-main"].mems == nodes("0")
    decision = decide(SMALL, before, asks("b", 1, 1, limit=5), at("0"))
    assert decision.numa_nodes == nodes("0")
    assert not decision.mems


def test_requests_are_never_over_a_numa_nodes_memory():
    before = filled(SMALL, asks("a", 1, 5))
    assert decide(SMALL, before, asks("b", 1, 5), Kin()).numa_nodes == nodes("1")


def test_what_is_really_free_counts_too():
    cramped = Occupancy(live=Live({0: GIB, 1: 6 * GIB}))
    assert decide(SMALL, cramped, asks("a", 1, 2), at("0")).numa_nodes == nodes("1")


def test_a_running_pods_own_memory_is_not_counted_against_it():
    request = asks("a", 1, 6)
    before = filled(SMALL, request).with_live(Live({0: GIB, 1: 7 * GIB}))
    again = decide(SMALL, before, request, Kin())
    assert (again.numa_nodes, again.mems) == (nodes("0"), nodes("0"))


def test_a_bound_container_stays_bound_when_memory_gets_short():
    request = asks("a", 1, 2, limit=4)
    before = filled(SMALL, request).with_live(Live({0: GIB, 1: GIB}, stalled={0: 0.5}))
    assert decide(SMALL, before, request, Kin()).mems == nodes("0")


def test_under_memory_pressure_nothing_is_bound():
    pressed = Occupancy(live=Live(stalled={0: 0.2, 1: 0.2}))
    decision = decide(SMALL, pressed, asks("a", 1, 1, mems=Memory.BIND), Kin())
    assert (decision.fits, decision.mems) == (True, nodes(""))
    assert "memory pressure 20%: too high to bind: left open" in decision.sentence


def test_a_memory_only_numa_node_is_a_lower_tier_of_its_neighbour():
    decision, after = settle(CXL, Occupancy(), asks("a", 1, 100))
    assert (decision.numa_nodes, decision.mems) == (nodes("0"), nodes("0,2"))
    assert "memory: does not fit beside the CPUs, the rest is on a lower tier" in decision.sentence
    load = after.memory_load(CXL)
    assert load[0] + load[2] == 100 * GIB
    assert load[2] > 0
    assert load[1] == 0


def test_memory_beside_the_cpus_goes_before_kin_on_a_lower_tier():
    before = filled(CXL, asks("a", 1, 40))
    assert before.reservations["a"].numa_nodes == nodes("0")
    assert decide(CXL, before, asks("b", 1, 30), Kin()).numa_nodes == nodes("1")


def test_memory_on_a_lower_tier_is_no_preferred_place():
    """A kubelet's restricted policy refuses a pod whose memory one NUMA node could have, and none has free."""
    before = filled(CXL, asks("a", 1, 40), asks("b", 1, 40))
    decision = decide(CXL, before, asks("c", 1, 30, policy=Policy.RESTRICTED), Kin())
    assert "the rest is on a lower tier" in decision.sentence
    assert (decision.fits, decision.admitted) == (True, False)


def test_a_limit_that_only_the_lower_tier_covers_binds_both():
    decision = decide(CXL, Occupancy(), asks("a", 1, 10, limit=120), at("0"))
    assert decision.mems == nodes("0,2")


def test_hbm_is_the_lower_tier_of_its_own_numa_node():
    decision = decide(machines.KNL_FLAT, Occupancy(), asks("a", 1, 25), at("2"))
    assert (decision.numa_nodes, decision.mems) == (nodes("2"), nodes("2,6"))


def test_hugepages_are_taken_where_they_are_set_aside():
    gib_page = {GIB: 8 * GIB}
    decision, after = settle(machines.HUGE, Occupancy(), asks("a", 1, 1, hugepages=gib_page))
    assert decision.numa_nodes == nodes("1")
    assert not decide(machines.HUGE, after, asks("b", 1, 1, hugepages=gib_page), Kin()).fits


def test_hugepages_of_a_wide_pod_are_booked_where_they_are():
    request = asks("a", 12, 8, hugepages={GIB: 6 * GIB})
    decision, after = settle(machines.HUGE, Occupancy(), request)
    assert decision.numa_nodes == nodes("0-1")
    found_anew = replace(after.reservations["a"], parts=())
    for occupancy in (after, after.with_reservation(found_anew)):
        pages = occupancy.load(machines.HUGE).hugepages
        assert {at: amount for at, amount in pages.items() if amount} == {(1, GIB): 6 * GIB}


@pytest.mark.parametrize(
    ("free", "home"),
    [({}, "0"), ({(0, MIB_PAGE): GIB}, "0"), ({(0, MIB_PAGE): GIB - MIB_PAGE}, "1"), ({(0, MIB_PAGE): 0}, "1")],
)
def test_hugepages_must_be_free_too(free, home):
    """Somebody who has not asked for them, or not through Kubernetes, may use them."""
    busy = Occupancy(live=Live(free_hugepages=free))
    assert decide(machines.HUGE, busy, asks("a", 1, 1, hugepages={MIB_PAGE: GIB}), Kin()).numa_nodes == nodes(home)


def test_hugepages_that_are_free_nowhere_fit_nowhere():
    busy = Occupancy(live=Live(free_hugepages={(0, MIB_PAGE): 0, (1, MIB_PAGE): 0}))
    assert not decide(machines.HUGE, busy, asks("a", 1, 1, hugepages={MIB_PAGE: GIB}), Kin()).fits


def test_who_is_bound_reaches_all_of_its_hugepages():
    """Of pages that are shared out over all memory, as the kernel's option at boot has it, a lower tier has a part."""
    tiered = machines.machine(
        "CXL with hugepages",
        ["0-15", "16-31", ""],
        [64, 64, 128],
        [[10, 21, 14], [21, 10, 24], [14, 24, 10]],
        hugepages=[{MIB_PAGE: GIB}] * 3,
    )
    for pages, mems in ((GIB, "0"), (2 * GIB, "0,2")):
        decision = decide(tiered, Occupancy(), asks("a", 2, 4, hugepages={MIB_PAGE: pages}), at("0"))
        assert (decision.numa_nodes, decision.mems) == (nodes("0"), nodes(mems))


def test_a_running_container_is_not_asked_for_its_hugepages_again():
    request = asks("a", 1, 1, hugepages={MIB_PAGE: 4 * GIB})
    _, after = settle(machines.HUGE, Occupancy(), request)
    taken = after.with_live(Live(free_hugepages={(0, MIB_PAGE): 0, (1, MIB_PAGE): 0}))
    assert decide(machines.HUGE, taken, request, Kin()).numa_nodes == nodes("0")


def test_hugepages_that_are_in_use_are_no_hint():
    busy = Occupancy(live=Live(free_hugepages={(1, GIB): 0}))
    request = asks("a", 1, 1, hugepages={GIB: 2 * GIB}, policy=Policy.SINGLE_NUMA_NODE)
    assert not decide(machines.HUGE, busy, request, Kin()).admitted


def test_a_machine_that_tells_of_no_memory_leaves_it_open():
    bare = machines.machine("bare", ["0-3", "4-7"], [0, 0])
    decision = decide(bare, Occupancy(), asks("a", 1, 4), Kin())
    assert (decision.fits, decision.mems) == (True, nodes(""))
    assert "memory: no NUMA node reports any: left open" in decision.sentence
