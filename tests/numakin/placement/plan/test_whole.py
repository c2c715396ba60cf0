"""A whole partition that is gone to, where no move and no exchange gains."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.plan.problem import Workload, nearness
from numakin.placement.plan.rebalance import Board
from numakin.placement.plan.whole import STALLED, WholeSearch
from tests import examples, machines
from tests.numakin.placement.asking import demand, nodes
from tests.numakin.placement.plan.seated import seated

KUNPENG = machines.KUNPENG_920

RING = {("a-0", "a-1"): 9.0, ("b-0", "b-1"): 9.0, ("c-0", "c-1"): 9.0}
"""Three pairs, each with one member elsewhere, on NUMA nodes that are full."""

IN_A_RING = {"a-0": "0", "b-1": "0", "b-0": "1", "c-1": "1", "c-0": "2", "a-1": "2", "d-0": "3", "d-1": "3"}


def board(where, weights=RING, cpu=16, movable=None) -> Board:
    occupancy, _ = seated(where, cpu=cpu)
    workloads = [Workload(pod, demand(cpu), 1) for pod in where]
    allowed = where if movable is None else movable
    return Board.of(KUNPENG, occupancy, {pod: pod for pod in where}, workloads, weights, movable=allowed)


def gone(where, steps):
    """Where they are when these have been made."""
    after = dict(where)
    for way in (way for step in steps for way in step):
        assert after[way.reservation] == str(way.source)
        after[way.reservation] = str(way.target)
    return after


def windows(where, count=8, budget=6, pays=0.002, **more):
    """Where they are after so many windows."""
    whole = WholeSearch()
    for _ in range(count):
        where = gone(where, whole.steps(board(where, **more), budget, pays))
    return where


@pytest.mark.parametrize("budget", [3, 6])
def test_those_who_talk_come_together_at_once_or_over_several_windows(budget):
    ends = windows(IN_A_RING, budget=budget)
    assert all(ends[entry] == ends[other] for entry, other in RING)


def test_a_member_that_may_not_move_stays():
    ends = windows(IN_A_RING, movable=IN_A_RING.keys() - {"a-0", "b-1"})
    assert (ends["a-0"], ends["b-1"]) == ("0", "0")


def test_nothing_is_looked_for_that_would_not_pay_for_all_who_move():
    assert windows(IN_A_RING, pays=0.5) == IN_A_RING


def test_what_is_declined_for_long_is_given_up():
    class Everything:
        def __contains__(self, step: object) -> bool:
            return True

    whole = WholeSearch()
    assert whole.steps(board(IN_A_RING), 6, 0.002, Everything()) == ()
    assert whole.homes
    first = whole.homes
    for _ in range(STALLED):
        whole.steps(board(IN_A_RING), 6, 0.002, Everything())
    assert whole.homes is not first


def test_nobody_is_moved_along_for_next_to_nothing_where_what_pays_was_declined():
    """The ads would come a thousandth of the traffic nearer to the web by changing places with the cart."""
    little = {("cart", "db"): 10.0, ("ads", "web"): 0.01}
    now = board({"cart": "1", "web": "1", "db": "0", "ads": "0"}, little, 1, {"cart", "ads"})
    declined = [frozenset({("cart", nodes("0"), CpuSet())})]
    assert WholeSearch().steps(now, 6, 0.002, declined) == ()


@given(
    st.dictionaries(st.sampled_from([f"p{number}" for number in range(6)]), st.sampled_from("0123"), min_size=2),
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1]), st.floats(1, 9)),
    st.data(),
)  # fmt: skip
def test_a_whole_is_worth_what_comes_nearer_less_the_price_of_those_who_move(where, edges, data):
    weights = {(f"p{a}", f"p{b}"): weight for (a, b), weight in edges.items()}
    movable = data.draw(st.sets(st.sampled_from(sorted(where))))
    homes = {pod: data.draw(st.integers(0, 3)) for pod in movable}
    there = {**where, **{pod: str(home) for pod, home in homes.items()}}
    known = {pair: weight for pair, weight in weights.items() if where.keys() >= {*pair}}

    def near(places):
        nearnesses = (nearness(KUNPENG, int(places[a]), int(places[b])) * weight for (a, b), weight in known.items())
        return sum(nearnesses) / (sum(known.values()) or 1.0)

    price = 0.01 * sum(where[pod] != home for pod, home in there.items())
    worth = board(where, weights, 1, movable).net(homes, 0.01)
    assert worth == pytest.approx(near(there) - near(where) - price)


def test_parts_take_the_numa_nodes_where_most_of_them_are_already():
    here = {"a-0": "0", "a-1": "0", "b-0": "1", "b-1": "2", "c-0": "2", "c-1": "1", "d-0": "3"}
    found = {"a-0": 2, "a-1": 2, "b-0": 0, "b-1": 0, "c-0": 1, "c-1": 1}
    aligned = board(here).aligned(found, 0.001)
    assert [aligned["a-0"], aligned["a-1"]] == [0, 0]
    assert sum(int(here[key]) != home for key, home in aligned.items()) == 2


@pytest.mark.parametrize(("room", "home"), [(3, 1), (2, 2)])
def test_parts_take_no_numa_node_where_the_others_leave_them_too_little(room, home):
    """Most of one were on NUMA node 1."""
    others = {f"stays-{number}": "1" for number in range(len(KUNPENG.node(1).cpus) // 8 - room)}
    here, found = {"a-0": "1", "a-1": "1", "b-0": "2", **others}, {"a-0": 0, "a-1": 0, "b-0": 0}
    assert board(here, {("a-0", "b-0"): 1.0}, 8, found.keys()).aligned(found, 0.001) == dict.fromkeys(found, home)


def test_a_pair_that_was_to_meet_elsewhere_meets_where_one_of_it_is_already():
    """Its third place brings nothing home that its own does not."""
    here = {"shop": "1", "visitor": "3", "cache": "0", "reader": "2"}
    talk = {("shop", "visitor"): 4000.0, ("cache", "reader"): 8487.0}
    found = {"shop": 3, "cache": 3, "reader": 3}
    assert board(here, talk, 1).spared(found, 0.08) in ({"shop": 3, "cache": 2}, {"shop": 3, "reader": 0})


def test_a_group_that_was_to_meet_elsewhere_meets_where_most_of_it_is_already():
    """The first one that stays loses by it, until the others have come."""
    here = {f"p{number}": "0" if number < 3 else "1" for number in range(5)}
    talk = dict.fromkeys(combinations(here, 2), 1.0)
    assert board(here, talk, 1).spared(dict.fromkeys(here, 2), 0.02) == {"p3": 0, "p4": 0}


@settings(max_examples=examples.of(100), deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from("0123")] * 2, st.floats(1, 3)), min_size=1, max_size=5), st.integers(1, 6))
def test_of_each_pair_that_is_apart_one_is_moved_and_no_other(pairs, budget):
    where, weights = {}, {}
    for number, (home, other, weight) in enumerate(pairs):
        where |= {f"a{number}": home, f"b{number}": other}
        weights[f"a{number}", f"b{number}"] = weight
    whole, moved = WholeSearch(), []
    for _ in range(10):
        steps = whole.steps(board(where, weights, 1), budget, 0.02)
        where = gone(where, steps)
        moved += [way.reservation[1:] for step in steps for way in step]
    assert sorted(moved) == [str(number) for number, (home, other, _) in enumerate(pairs) if home != other]


def test_who_has_come_and_gone_meanwhile_is_no_hindrance():
    whole = WholeSearch()
    whole.steps(board(IN_A_RING), 2, 0.002)
    changed = {**IN_A_RING, "e-0": "3"}
    del changed["a-1"], changed["d-1"]
    after = gone(changed, whole.steps(board(changed, {**RING, ("d-0", "e-0"): 1.0}), 6, 0.002))
    assert after.keys() == changed.keys()


@settings(max_examples=examples.of(40), deadline=None)
@given(
    st.dictionaries(st.sampled_from([f"p{number}" for number in range(10)]), st.sampled_from("0123"), min_size=2),
    st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]),
        st.sampled_from([1.0, 2.0, 7.0]),
        max_size=20,
    ),
    st.integers(1, 5),
)
def test_every_step_fits_is_within_the_budget_and_brings_something_home(where, edges, budget):
    cpu = 9
    if max(list(where.values()).count(home) for home in "0123") * cpu > len(KUNPENG.node(0).cpus):
        return
    weights = {(f"p{a}", f"p{b}"): weight for (a, b), weight in edges.items()}
    now, whole = dict(where), WholeSearch()
    for _ in range(3):
        steps = whole.steps(board(now, weights, cpu), budget, 0.002)
        assert sum(map(len, steps)) <= budget
        for step in steps:
            assert step[0].gain > 0
            assert all(way.whole for way in step)
            assert len({way.reservation for way in step}) == len(step)
            now = gone(now, [step])
            for cpu_node in KUNPENG.cpu_nodes:
                assert list(now.values()).count(str(cpu_node)) * cpu <= len(KUNPENG.node(cpu_node).cpus)


@pytest.mark.parametrize("count", [1, 2])
def test_the_same_members_get_the_same_steps(count):
    assert windows(IN_A_RING, count=count) == windows(IN_A_RING, count=count)
