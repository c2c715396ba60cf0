"""A move is decided as a newcomer's place is, and takes along no more than was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numakin.placement.decide.decide import Kin
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.relocation import Moved, Mover, moved
from numakin.placement.model.live_usage import Live
from numakin.placement.optin.options import Cpus, Memory, Move, Span
from numakin.placement.state.occupancy import Occupancy
from tests.machines import EPYC_NPS1, SMALL, XEON
from tests.numakin.placement.asking import asks, at, cpus, demand, nodes, settle


def on(machine, *asked, occupancy: Occupancy | None = None) -> Occupancy:
    """(request, NUMA node) of what runs there."""
    occupancy = occupancy or Occupancy()
    for request, home in asked:
        _, occupancy = settle(machine, occupancy, request, at(home))
        assert occupancy.reservations[request.reservation_key].numa_nodes == nodes(home)
    return occupancy


def go(home: str, *requests) -> Mover:
    return Mover(nodes(home), requests, Kin())


def test_a_member_gets_the_cpus_of_its_new_numa_node():
    pod = asks("a", 2)
    done = moved(XEON, on(XEON, (pod, "0")), [go("1", pod)])
    assert isinstance(done, Moved)
    ((request, decision),) = done.decisions
    assert request == pod
    assert decision.cpus == XEON.node(1).cpus
    assert done.occupancy.reservations["a"].numa_nodes == nodes("1")
    assert done.occupancy.allocations["a-main"].cpus == XEON.node(1).cpus


def within(domain: str, *requests) -> Mover:
    return Mover(nodes("0"), requests, Kin(), cpus(domain))


FIRST, SECOND = "0-3,32-35", "4-7,36-39"


def in_caches(*requests) -> Occupancy:
    """Each of a group of its own, one after the other."""
    return on(EPYC_NPS1, *((request, "0") for request in requests))


def kept(pod: str, cpu: float = 1, **wishes):
    return asks(pod, cpu, group=f"shop/{pod}", span=Span.CACHE, **wishes)


def test_a_member_that_changes_its_cache_gets_its_cpus_and_keeps_its_memory():
    pod = kept("a", mems=Memory.BIND)
    before = in_caches(pod)
    before = before.with_allocation(replace(before.allocations["a-main"], mems=nodes("0-1")))
    done = moved(EPYC_NPS1, before, [within(SECOND, pod)])
    assert isinstance(done, Moved)
    allocation = done.occupancy.allocations["a-main"]
    assert (allocation.cpus, allocation.mems) == (cpus(SECOND), nodes("0-1"))
    assert done.occupancy.reservations["a"] == replace(before.reservations["a"], cache_domain=cpus(SECOND))


def test_two_exchange_caches_that_have_room_for_one_alone():
    first, other = kept("a", 7), kept("b", 7)
    before = in_caches(first, other)
    assert isinstance(moved(EPYC_NPS1, before, [within(SECOND, first)]), Reason)
    done = moved(EPYC_NPS1, before, [within(SECOND, first), within(FIRST, other)])
    assert isinstance(done, Moved)
    assert [done.occupancy.reservations[key].cache_domain for key in "ab"] == [cpus(SECOND), cpus(FIRST)]


def test_a_cache_that_has_become_hot_or_full_takes_nobody():
    first, other = kept("a"), kept("b", 8)
    before = in_caches(first, other)
    assert isinstance(moved(EPYC_NPS1, before, [within(SECOND, first)]), Reason)
    third = "8-11,40-43"
    hot = before.with_live(Live(hot={cpus(third).mask: True}))
    assert isinstance(moved(EPYC_NPS1, before, [within(third, first)]), Moved)
    assert isinstance(moved(EPYC_NPS1, hot, [within(third, first)]), Reason)


def test_who_is_kept_within_no_cache_any_more_does_not_change_it():
    pod = kept("a")
    wide = replace(pod, opt_in=replace(pod.opt_in, span=Span.NUMA))
    assert isinstance(moved(EPYC_NPS1, in_caches(pod), [within(SECOND, wide)]), Reason)


def test_all_containers_of_a_pod_go_together():
    whole = demand(2)
    first, second = (asks("a", 1, name=name, pod_demand=whole) for name in ("app", "proxy"))
    done = moved(XEON, on(XEON, (first, "0"), (second, "0")), [go("1", first, second)])
    assert isinstance(done, Moved)
    assert {allocation.cpus for allocation in done.occupancy.allocations.values()} == {XEON.node(1).cpus}
    assert done.occupancy.cpu_load(XEON) == {0: 0, 1: 2000}


def test_two_change_places_where_neither_would_fit_beside_the_other():
    big = len(SMALL.node(0).cpus)
    first, other = asks("a", big), asks("b", big)
    occupancy = on(SMALL, (first, "0"), (other, "1"))
    assert isinstance(moved(SMALL, occupancy, [go("1", first)]), Reason)
    done = moved(SMALL, occupancy, [go("1", first), go("0", other)])
    assert isinstance(done, Moved)
    assert [done.occupancy.reservations[key].numa_nodes for key in ("a", "b")] == [nodes("1"), nodes("0")]


def test_a_move_to_where_it_does_not_fit_is_declined_with_the_reason():
    first, other = asks("a", 3), asks("b", 3)
    why = moved(SMALL, on(SMALL, (first, "0"), (other, "1")), [go("1", first)])
    assert str(why) == "move NUMA node 1: does not hold: short of CPU"


@pytest.mark.parametrize(
    ("wishes", "before", "after"),
    [
        ({"move": Move.CPUS, "mems": Memory.BIND}, "0", ""),
        ({"move": Move.CPUS_AND_MEMORY, "mems": Memory.BIND}, "0", "1"),
        ({"move": Move.CPUS, "mems": Memory.PREFER}, "", ""),
        ({"move": Move.CPUS_AND_MEMORY, "mems": Memory.PREFER}, "", ""),
    ],
)
def test_pages_follow_only_where_that_was_asked_for(wishes, before, after):
    """Empty is open: on two NUMA nodes that is also the old and the new one together."""
    pod = asks("a", 2, **wishes)
    occupancy = on(XEON, (pod, "0"))
    assert occupancy.allocations["a-main"].mems == nodes(before)
    done = moved(XEON, occupancy, [go("1", pod)])
    assert isinstance(done, Moved)
    assert done.occupancy.allocations["a-main"].mems == nodes(after)


def test_a_bound_member_that_leaves_its_pages_says_so():
    pod = asks("a", 2, mems=Memory.BIND)
    done = moved(XEON, on(XEON, (pod, "0")), [go("1", pod)])
    assert isinstance(done, Moved)
    assert "pages NUMA node 0: stay there" in done.decisions[0][1].sentence


def test_exclusive_cpus_are_chosen_anew_there_and_others_leave_them():
    pod, shared = asks("a", 2, cpus=Cpus.EXCLUSIVE), asks("b", 2)
    done = moved(XEON, on(XEON, (pod, "0"), (shared, "1")), [go("1", pod)])
    assert isinstance(done, Moved)
    own = done.occupancy.allocations["a-main"].exclusive
    assert len(own) == 2
    assert own <= XEON.node(1).cpus
    assert done.occupancy.allocations["b-main"].cpus == XEON.node(1).cpus - own
    assert [name for _, decision in done.decisions for name, _ in decision.updates] == ["b-main"]
