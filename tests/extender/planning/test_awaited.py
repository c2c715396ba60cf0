"""Workloads that an operator has named and that have no pods yet have slots in plans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planning import awaited
from extender.planning.group_planner import GroupPlanner, Plans
from extender.state.columns.free_room import NumaPlace
from extender.state.node_view import NodeView
from extender.traffic.known import ClusterTraffic
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Occupancy
from tests.extender.running import machine, reservation

A, B, C, D = (f"shop/Deployment/{name}" for name in "abcd")
SHOP = "shop/shop"
HALF = Demand(cpu_milli=4000)
"""Half of a NUMA node: two fit."""


def known(
    replicas: dict[str, int], pairs: dict[tuple[str, str], float], demand: Demand = HALF, seen: float = 0.0
) -> ClusterTraffic:
    """replicas: of those that have pods. pairs: what an operator expects. seen: the traffic of each pair of them."""
    peers: dict[str, dict[str, float]] = {name: {} for name in replicas}
    coming = {}
    for (one, other), weight in pairs.items():
        if one in replicas and other in replicas:
            peers[one][other] = peers[other][one] = weight + seen
        else:
            coming[one, other] = weight
    return ClusterTraffic(
        peers=peers,
        declared=dict.fromkeys(replicas, SHOP),
        replicas=replicas,
        demands=dict.fromkeys(replicas, demand),
        awaited={SHOP: coming} if coming else {},
    )


@pytest.mark.parametrize(
    ("replicas", "pairs", "coming"),
    [
        ({A: 1, B: 1}, {(A, B): 1.0}, []),
        ({A: 1}, {(A, B): 1.0}, [B]),
        ({A: 1}, {(A, B): 1.0, (C, D): 1.0}, [B, C, D]),
        ({}, {(A, B): 1.0}, [A, B]),
    ],
    ids=["all are there", "one is missing", "some that only the missing talk with", "nobody is there"],
)
def test_who_is_awaited(replicas, pairs, coming):
    traffic = known(replicas, pairs)
    assert awaited.awaited(traffic) == dict.fromkeys(coming, SHOP)
    assert awaited.edges(traffic, awaited.awaited(traffic)) == traffic.awaited.get(SHOP, {})


@given(st.integers(1, 3 * awaited.MOST_OF_GROUP))
def test_no_group_makes_plans_long(count: int):
    """Nor has an edge an end that nobody plans for."""
    traffic = known({A: 1}, {(A, f"shop/Deployment/n{number}"): 1.0 for number in range(count)})
    coming = awaited.awaited(traffic)
    assert len(coming) == min(count, awaited.MOST_OF_GROUP)
    assert {end for pair in awaited.edges(traffic, coming) for end in pair} == {A, *coming}


@pytest.mark.parametrize(("sizes", "usual"), [((1, 2, 30), 2), ((1, 2), 1), ((5,), 5)])
def test_it_is_expected_to_ask_for_what_the_median_workload_of_its_group_does(sizes, usual):
    demands = {f"{at}": Demand(cpu_milli=1000 * size, memory=size << 30) for at, size in enumerate(sizes)}
    groups = {**dict.fromkeys(demands, SHOP), "x": "shop/other"}
    found = awaited.usual({**demands, "x": Demand(cpu_milli=7)}, groups)
    assert found == {SHOP: Demand(cpu_milli=1000 * usual, memory=usual << 30), "shop/other": Demand(cpu_milli=7)}


class World:
    """A planner, and one node of two NUMA nodes that hold two workloads each."""

    def __init__(self) -> None:
        self.planner, self.now = GroupPlanner(), 0.0

    def plans(self, traffic: ClusterTraffic, **homes: str) -> Plans:
        """homes: NUMA nodes by the letters of those that run."""
        self.now += 1.0
        slots = {f"{name}-0": reservation(f"{name}-0", home, milli=4000) for name, home in homes.items()}
        workloads = {uid: f"shop/Deployment/{uid[0]}" for uid in slots}
        views = [NodeView("n1", "s", "1", machine(), Occupancy(reservations=slots))]
        return self.planner.plans(traffic, views, workloads, {}, self.now)


@pytest.fixture
def world() -> World:
    return World()


PAIRS = {(A, C): 2.0, (B, D): 2.0, (A, B): 1.0}
"""a and b come first; c will talk more with a, and d with b, than those do with each other."""


def home(plans: Plans, name: str) -> NumaPlace:
    (vacancy,) = plans[name]
    return vacancy.place


def test_who_comes_first_leaves_room_for_who_is_named_and_comes_later(world: World):
    """Without that a and b would sit together, and c and d find no room beside them."""
    plans = world.plans(known({A: 1, B: 1}, PAIRS))
    assert home(plans, A) == home(plans, C) != home(plans, B) == home(plans, D)


def test_what_it_really_asks_for_counts_once_it_has_pods(world: World):
    world.plans(known({A: 1, B: 1}, PAIRS))
    plans = world.plans(known({A: 1, B: 1, C: 2, D: 1}, PAIRS, demand=Demand(cpu_milli=2000)))
    assert sum(count for _, count in plans[C]) == 2
    assert home(plans, A) == home(plans, C)


def test_nothing_is_kept_for_those_alone_who_may_never_come(world: World):
    traffic = known({A: 1, B: 1}, PAIRS)
    assert world.plans(traffic) != {}
    assert world.plans(traffic, a="0", b="1") == {}


def test_nothing_is_planned_where_no_pod_of_the_group_is_known(world: World):
    assert world.plans(known({}, PAIRS)) == {}


def test_one_that_an_operator_no_longer_names_is_forgotten(world: World):
    world.plans(known({A: 1, B: 1}, PAIRS))
    assert world.plans(known({A: 1, B: 1}, {(A, B): 1.0})).keys() == {A, B}


def test_one_that_had_pods_is_expected_back_as_it_was(world: World):
    """With all its replicas, not as one of which nothing is known."""
    world.plans(known({A: 1, B: 1, C: 2, D: 1}, PAIRS, demand=Demand(cpu_milli=2000)))
    traffic = known({A: 1, B: 1}, PAIRS)
    assert sum(count for _, count in world.plans(traffic)[C]) == 2
