"""Workloads that use more CPU than they ask for: requests are promised and have to fit, use is expected and weighs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.demand import Demand, counted
from numakin.placement.model.topology import Machine
from numakin.placement.state.occupancy import Occupancy
from tests.numakin.placement.asking import asks, at, filled, nodes
from tests.numakin.placement.decide.shapes import KUNPENG, SMALL

USES = 2_000


def greedy(pod, used=USES, cpu=0.1, **wishes):
    """A pod that asks for 100m, of a workload whose pods use two CPUs."""
    request = asks(pod, cpu, **wishes)
    return replace(request, pod_demand=counted(request.pod_demand, used))


def crowd(machine: Machine, count: int) -> Occupancy:
    """So many of them on NUMA node 0."""
    occupancy = Occupancy()
    for number in range(count):
        request = greedy(f"m{number}")
        decision = decide(machine, occupancy, request, at("0"))
        occupancy = occupancy.with_reservation(request.reservation(nodes("0")))
        assert decision.fits
    return occupancy


def test_kin_no_longer_draw_where_more_cpu_would_be_used_than_there_is():
    occupancy = crowd(SMALL, 2)
    decision = decide(SMALL, occupancy, greedy("next"), Kin())
    assert decision.numa_nodes == nodes("1"), "two of them use all four CPUs of NUMA node 0"
    assert "nearer to its kin NUMA node 0, 100%: 2 CPUs more would be used than there are" in decision.sentence


def test_by_requests_alone_all_of_them_would_be_together():
    occupancy = Occupancy()
    for number in range(2):
        occupancy = occupancy.with_reservation(greedy(f"m{number}", used=0).reservation(nodes("0")))
    assert decide(SMALL, occupancy, greedy("next", used=0), Kin()).numa_nodes == nodes("0")


@pytest.mark.parametrize("source", ["expected", "planned"])
def test_neither_a_nomination_nor_a_plan_holds_where_others_have_cpu_for_it(source):
    kin = Kin(**{source: nodes("0")})
    decision = decide(SMALL, crowd(SMALL, 2), greedy("next"), kin)
    assert decision.numa_nodes == nodes("1")
    assert "does not hold: short of CPU, by what is used there" in decision.sentence


def test_use_refuses_no_pod_its_place_and_widens_none():
    """It was promised no more than it asked for, and may well be idle."""
    occupancy = filled(SMALL, *(greedy(f"m{number}") for number in range(6)))
    decision = decide(SMALL, occupancy, greedy("next"), Kin())
    assert decision.fits
    assert len(decision.numa_nodes) == 1
    assert "expected use" in [reason.what for reason in decision.reasons]
    assert decision.score < 0.3, "another machine with CPU to spare is better, however many kin are here"


def test_room_for_the_rest_of_a_group_counts_what_they_will_use():
    two = decide(SMALL, Occupancy(), greedy("first", size=2), Kin())
    six = decide(SMALL, Occupancy(), greedy("first", size=6), Kin())
    assert two.score > six.score
    assert decide(SMALL, Occupancy(), greedy("first", used=0, size=6), Kin()).score > six.score


def test_emptiness_counts_what_is_used():
    busy = filled(KUNPENG, greedy("a", used=20_000, group="shop/a"))
    assert decide(KUNPENG, busy, asks("b", 4, group="shop/b"), Kin()).numa_nodes == nodes("1")
    asked = filled(KUNPENG, greedy("a", used=0, group="shop/a"), asks("c", 4, group="shop/c"))
    assert decide(KUNPENG, asked, asks("b", 4, group="shop/b"), Kin()).numa_nodes == nodes("2")


def test_a_decision_says_which_of_request_and_use_decided():
    decision = decide(SMALL, crowd(SMALL, 1), greedy("next"), Kin())
    lines = [str(entry) for entry in decision.reasons]
    assert "counted as 2 CPUs: its workload's pods use that, and ask for 0.1" in lines
    assert "room left 0%: CPUs there that stay free, by what is used" in lines
    by_request = [str(entry) for entry in decide(SMALL, Occupancy(), asks("a"), Kin()).reasons]
    assert not any("use" in line for line in by_request)
    assert decision.numa_nodes == nodes("0")


@given(st.integers(0, 6), st.integers(0, 1000), st.sampled_from([SMALL, KUNPENG]))
def test_who_uses_no_more_than_it_asks_for_is_placed_as_if_nothing_were_known(members, used, machine):
    pods = [greedy(f"m{number}", used=used, cpu=1) for number in range(members)]
    plain = [asks(f"m{number}", 1) for number in range(members)]
    assert pods == plain
    assert filled(machine, *pods) == filled(machine, *plain)


@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 5_000))
def test_what_is_expected_of_several_is_the_sum_of_what_is_expected_of_each(ask, use, other_ask, other_use):
    one, other = counted(Demand(ask), use), counted(Demand(other_ask), other_use)
    assert (one + other).expected_milli == one.expected_milli + other.expected_milli
    assert (one + other).promised == Demand(ask) + Demand(other_ask)
