"""Members that ask for it are kept within one last-level cache of their NUMA node, with their kin, while it has room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.standins.machines import MACHINES
from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.live_usage import Live
from numakin.placement.model.rules import Rules
from numakin.placement.optin.options import Pool
from numakin.placement.optin.parsing import Cpus, Scope, Span
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, cpus, filled, nodes, settle

EPYC = machines.EPYC_NPS1
FIRST, SECOND = cpus("0-3,32-35"), cpus("4-7,36-39")


def member(pod, cpu=1.0, **wishes):
    return asks(pod, cpu, **{"span": Span.CACHE, **wishes})


def given(occupancy, pod):
    return occupancy.allocations[f"{pod}-main"].cpus


def test_kin_share_a_cache():
    after = filled(EPYC, *(member(f"p{at}") for at in range(8)))
    assert {given(after, f"p{at}") for at in range(8)} == {FIRST}


def test_without_asking_for_it_all_cpus_of_the_numa_node_are_shared():
    assert decide(EPYC, Occupancy(), asks("a"), Kin()).cpus == EPYC.cpus


def test_an_operator_may_ask_for_all_that_do_not_say_it():
    before = Occupancy(rules=Rules(within_caches=True))
    assert decide(EPYC, before, asks("a"), Kin()).cpus == FIRST
    assert decide(EPYC, before, asks("a", span=Span.NUMA), Kin()).cpus == EPYC.cpus


def test_another_group_goes_where_most_room_is():
    after = filled(EPYC, member("a"), member("b", group="shop/other"))
    assert (given(after, "a"), given(after, "b")) == (FIRST, SECOND)


def test_what_a_full_cache_does_not_hold_goes_to_the_next():
    after = filled(EPYC, *(member(f"p{at}", 3) for at in range(4)))
    assert [given(after, f"p{at}") for at in range(4)] == [FIRST, FIRST, SECOND, SECOND]


def test_the_cache_with_most_of_the_kin_weight_is_taken():
    before = filled(EPYC, member("a", group="shop/a"), member("b", group="shop/b"))
    decision = decide(EPYC, before, member("new", group="shop/c"), Kin(weights={"a": 1.0, "b": 3.0}))
    assert decision.cpus == SECOND
    assert "cache CPUs 4-7,36-39: 75% of its kin in its home's caches are there" in decision.sentence


def test_one_cache_mate_of_more_weight_draws_more_than_two_of_less():
    before = filled(EPYC, member("a", group="shop/a"), member("b", group="shop/b"), member("c", group="shop/a"))
    assert [given(before, pod) for pod in "abc"] == [FIRST, SECOND, FIRST]
    decision = decide(EPYC, before, member("new", group="shop/c"), Kin(weights={"a": 1.0, "b": 3.0, "c": 1.0}))
    assert decision.cpus == SECOND


def test_kin_with_exclusive_cpus_draw_too_and_are_drawn():
    before = filled(EPYC, asks("own", 2, cpus=Cpus.EXCLUSIVE))
    first, after = settle(EPYC, before, member("a"))
    assert first.cpus == FIRST - cpus("0,32")
    assert filled(EPYC, asks("next", 2, cpus=Cpus.EXCLUSIVE), occupancy=after).exclusive <= FIRST


def test_exclusive_cpus_come_from_a_cache_that_still_holds_its_members():
    before = filled(EPYC, *(member(f"p{at}") for at in range(7)))
    decision = decide(EPYC, before, asks("own", 2, cpus=Cpus.EXCLUSIVE, group="shop/own"), Kin())
    assert (decision.exclusive <= SECOND, decision.updates) == (True, ())


def test_exclusive_cpus_are_given_though_every_cache_then_is_too_small_for_its_members():
    before = filled(EPYC, *(member(f"p{at}", 7, group=f"shop/{at}") for at in range(4)))
    assert {len(given(before, f"p{at}")) for at in range(4)} == {8}
    assert len(decide(EPYC, before, asks("own", 2, cpus=Cpus.EXCLUSIVE, group="shop/own"), Kin()).exclusive) == 2


def test_a_request_that_no_cache_holds_has_its_numa_node():
    decision = decide(EPYC, Occupancy(), member("a", 9), Kin())
    assert decision.cpus == EPYC.cpus
    assert "cache: no cache domain has room for it: all CPUs of its home" in decision.sentence


@pytest.mark.parametrize("machine", [machines.XEON, machines.ALTRA, machines.SMALL, machines.NO_NUMA])
def test_where_a_numa_node_has_one_cache_nothing_changes(machine):
    asked, unasked = (decide(machine, Occupancy(), request, Kin()) for request in (member("a"), asks("a")))
    assert (asked.cpus, asked.mems, asked.score) == (unasked.cpus, unasked.mems, unasked.score)
    assert "has no cache domains to choose from" in asked.sentence


@pytest.mark.parametrize(
    ("name", "wanted", "given"),
    [
        ("epyc-7601", 2, "0-3,64-67"),
        ("epyc-7742-nps1", 8, "0-3,128-131"),
        ("epyc-7763-nps1", 16, "0-7,128-135"),
        ("epyc-9654-nps1", 16, "0-7,192-199"),
        ("epyc-9755-nps1", 16, "0-7,256-263"),
        ("epyc-9965-nps1", 32, "0-15,384-399"),
        ("kunpeng-920-2s", 4, "0-3"),
        ("xeon-8480-snc4", 2, "0-13,112-125"),
        ("gb200", 8, "0-71"),
    ],
)
def test_on_known_machines(name, wanted, given):
    machine = MACHINES[name].machine
    assert decide(machine, Occupancy(), member("a", wanted), Kin()).cpus == cpus(given)


def test_the_home_is_chosen_as_without_it():
    machine = machines.EPYC_NPS4
    requests = [
        (member(f"p{at}", 5, group=f"shop/{at % 3}"), asks(f"p{at}", 5, group=f"shop/{at % 3}")) for at in range(20)
    ]
    kept, free = (filled(machine, *(pair[at] for pair in requests)) for at in (0, 1))
    assert {key: entry.numa_nodes for key, entry in kept.reservations.items()} == {
        key: entry.numa_nodes for key, entry in free.reservations.items()
    }


def test_exclusive_cpus_that_squeeze_a_cache_open_it_and_their_end_closes_it():
    before = filled(EPYC, *(member(f"p{at}", 2) for at in range(4)))
    decision, after = settle(EPYC, before, asks("own", 60 - 8, cpus=Cpus.EXCLUSIVE, group="shop/own"))
    assert decision.fits
    squeezed = [given(after, f"p{at}") for at in range(4)]
    assert all(len(entry) >= 8 and entry.isdisjoint(decision.exclusive) for entry in squeezed)
    assert pools.due(EPYC, after) == ()
    without = after.without_pod("own")
    assert dict(pools.due(EPYC, without)).get("p0-main", given(after, "p0")) == FIRST


def test_a_hot_cache_takes_nobody_until_it_is_cool():
    before = filled(EPYC, member("a"), member("b"))
    hot = before.with_live(Live(hot={FIRST.mask: True}))
    assert decide(EPYC, hot, member("c"), Kin()).cpus == SECOND
    cool = hot.with_live(Live(hot={FIRST.mask: False}))
    assert decide(EPYC, cool, member("c"), Kin()).cpus == FIRST


def test_who_is_let_out_of_a_cache_has_its_home_with_all_of_the_pods_containers():
    whole = member("a", 3).pod_demand
    _, before = settle(EPYC, Occupancy(), member("a", 1, pod_demand=whole))
    out = before.with_reservation(replace(before.reservations["a"], let_out=nodes("0")))
    assert dict(pools.due(EPYC, out)) == {"a-main": EPYC.cpus}
    second, after = settle(EPYC, out, member("a", 2, pod_demand=whole, name="proxy"))
    assert (second.cpus, after.reservations["a"].cache_domain) == (EPYC.cpus, FIRST)
    home = after.with_reservation(replace(after.reservations["a"], let_out=nodes("")))
    assert {cpus for _, cpus in pools.due(EPYC, home)} == {FIRST}


def test_a_pods_containers_share_its_cache():
    whole = member("a", 3).pod_demand
    first, before = settle(EPYC, Occupancy(), member("a", 1, pod_demand=whole))
    second, after = settle(EPYC, before, member("a", 2, pod_demand=whole, name="proxy", span=Span.NUMA))
    assert first.cpus == second.cpus == FIRST
    assert pools.due(EPYC, after) == ()


def test_in_container_scope_each_container_has_its_own():
    first, before = settle(EPYC, Occupancy(), member("a", 8, scope=Scope.CONTAINER, group="shop/a"))
    second, _ = settle(EPYC, before, member("a", 8, scope=Scope.CONTAINER, group="shop/a", name="two"))
    assert (first.cpus, second.cpus) == (FIRST, SECOND)


def test_a_restarted_container_has_its_former_cache_again():
    before = filled(EPYC, member("x", 4, group="shop/x"), member("a", group="shop/a")).without_allocation("a-main")
    emptier = before.without_pod("x")
    assert decide(EPYC, emptier, member("a", group="shop/a"), Kin()).cpus == SECOND


def test_reserved_cpus_are_no_part_of_it():
    before = Occupancy(reserved=cpus("0,32"))
    assert decide(EPYC, before, member("a"), Kin()).cpus == SECOND
    full = filled(EPYC, *(member(f"p{at}", 8, group=f"shop/{at}") for at in range(7)), occupancy=before)
    assert decide(EPYC, full, member("a", 6), Kin()).cpus == FIRST - cpus("0,32")


def test_the_reclaimed_pool_stays_the_numa_nodes():
    decision = decide(EPYC, Occupancy(), member("a", pool=Pool.RECLAIMED), Kin())
    assert (decision.cpus, decision.cache_domain) == (EPYC.cpus, cpus(""))


def test_a_demand_that_grows_beyond_its_cache_opens_it():
    before = filled(EPYC, member("a", 4), member("b", 4))
    grown = before.with_reservation(replace(before.reservations["a"], demand=member("a", 5).demand))
    assert dict(pools.due(EPYC, grown)) == {"a-main": EPYC.cpus, "b-main": EPYC.cpus}
    assert grown.reservations["a"].numa_nodes == nodes("0")
