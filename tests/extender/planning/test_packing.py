"""Groups that wait are packed whole, before the first of their pods is placed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planning.group_plan import Vacancy
from extender.planning.packing import Coming, Pod, pack
from extender.state.columns.free_room import FreeRoom, NumaPlace

WIDE = 1 << 40
"""Bytes: enough for all."""


def room(*nodes: list[int], memory: int = WIDE, groups: dict[NumaPlace, int] | None = None) -> FreeRoom:
    """Nodes n0, n1 and so on with so many free millicores on each of their NUMA nodes."""
    width = max(map(len, nodes))
    cpu, ids = np.zeros((len(nodes), width)), np.full((len(nodes), width), -1.0)
    there = np.zeros((len(nodes), width))
    for at, node in enumerate(nodes):
        cpu[at, : len(node)], ids[at, : len(node)] = node, range(len(node))
    for place, count in (groups or {}).items():
        there[int(place.node[1:]), place.numa_node] = count
    return FreeRoom([f"n{at}" for at in range(len(nodes))], ids, cpu, np.where(ids >= 0, float(memory), 0.0), there)


def pods(group: str, *millis: int, workload: str = "", memory: int = 0) -> list[Pod]:
    return [Pod(f"{group}-{at}", workload or f"{group}-{at}", (milli, memory)) for at, milli in enumerate(millis)]


def coming(group: str, *millis: int, **more) -> Coming:
    return Coming(group, pods(group, *millis), **more)


def spots(places: dict[str, NumaPlace]) -> dict[NumaPlace, int]:
    return dict(Counter(places.values()))


def test_a_group_goes_to_the_numa_node_that_holds_it_with_least_left_over():
    packed = pack([coming("a", 1000, 3000)], room([9000, 3999], [4500, 8000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 2}


def test_the_largest_group_chooses_first_however_they_are_listed():
    groups = [coming("a", *[500] * 4), coming("b", *[1000] * 6)]
    for order in (groups, groups[::-1]):
        packed = pack(order, room([6500, 2500]))
        assert spots(packed["b"]) == {NumaPlace("n0", 0): 6}
        assert spots(packed["a"]) == {NumaPlace("n0", 1): 4}


def test_a_group_that_no_numa_node_holds_is_on_the_fewest_of_one_node():
    packed = pack([coming("a", *[1000] * 10)], room([4000, 4000, 4000], [7000, 3000], [9000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 7, NumaPlace("n1", 1): 3}


def test_a_group_that_no_node_holds_is_on_the_fewest_nodes():
    packed = pack([coming("a", *[1000] * 12)], room([3000, 3000], [8000], [5000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 8, NumaPlace("n2", 0): 4}


def test_memory_bounds_it_too():
    group = Coming("a", pods("a", 1000, 1000, memory=3))
    assert len(spots(pack([group], room([8000, 8000], memory=5))["a"])) == 2


def test_those_that_come_are_with_the_members_that_are_there():
    here = {NumaPlace("n1", 1): 3}
    packed = pack([coming("a", 1000, 1000, here=here)], room([2000, 9000], [9000, 2000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 1): 2}


def test_the_others_go_elsewhere_together_where_few_fit_beside_the_members():
    packed = pack([coming("a", *[1000] * 8, here={NumaPlace("n0", 0): 1})], room([1000], [8000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 8}


def test_who_cannot_choose_goes_before_who_can():
    groups = [coming("b", *[1000] * 4), coming("a", 1000, 1000, here={NumaPlace("n0", 0): 2})]
    packed = pack(groups, room([4000], [5000]))
    assert spots(packed["a"]) == {NumaPlace("n0", 0): 2}
    assert spots(packed["b"]) == {NumaPlace("n1", 0): 4}


def test_what_is_still_to_come_counts_for_where_and_is_not_planned():
    packed = pack([coming("a", 1000, 1000, beyond=(3000, 0))], room([3000, 6000]))
    assert spots(packed["a"]) == {NumaPlace("n0", 1): 2}


def test_a_group_that_grows_begins_where_most_can_follow():
    groups = {NumaPlace("n0", 0): 1}
    packed = pack([coming("a", 1000, grows=True)], room([9000], [6000], [1000], groups=groups))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 1}


def test_two_groups_that_grow_do_not_begin_on_one_numa_node():
    packed = pack([coming("a", 1000, grows=True), coming("b", 1000, grows=True)], room([9000], [7000]))
    assert spots(packed["a"]) != spots(packed["b"])


def test_a_node_where_its_pods_could_not_go_is_not_tried_again():
    packed = pack([coming("a", 1000, 1000, barred=frozenset({"n0"}))], room([2000], [5000]))
    assert spots(packed["a"]) == {NumaPlace("n1", 0): 2}


def test_a_group_of_higher_priority_chooses_first():
    groups = [coming("a", *[1000] * 4), coming("b", 1000, 1000, priority=7)]
    packed = pack(groups, room([4000, 1000]))
    assert spots(packed["b"]) == {NumaPlace("n0", 0): 2}


def test_those_that_talk_with_each_other_are_on_one_side_of_the_cut():
    talk = {"a": {"c": 9.0}, "c": {"a": 9.0}, "b": {"d": 9.0, "c": 1.0}, "d": {"b": 9.0}}
    group = Coming("g", [Pod(name, name, (1000, 0)) for name in "abcd"])
    places = pack([group], room([2000, 2000]), talk)["g"]
    assert places["a"] == places["c"]
    assert places["b"] == places["d"]


def test_a_group_that_has_to_be_cut_is_cut_as_the_plan_by_its_traffic_has_it():
    group = Coming("g", [Pod(name, name, (1000, 0)) for name in "abcd"])
    first, second = NumaPlace("n0", 0), NumaPlace("n0", 1)
    slots = {name: (Vacancy(first if name in "ad" else second, 1),) for name in "abcd"}
    places = pack([group], room([2000, 2000]), slots=slots)["g"]
    assert places == {"a": first, "d": first, "b": second, "c": second}


def test_the_room_that_these_groups_have_already_is_theirs_to_plan_with():
    packed = pack([coming("a", 1000, 1000)], room([0], [1000]), held={NumaPlace("n0", 0): (2000, 0)})
    assert spots(packed["a"]) == {NumaPlace("n0", 0): 2}


def test_a_pod_that_no_numa_node_holds_is_not_planned():
    packed = pack([coming("a", 1000, 9000)], room([4000, 4000]))
    assert {*packed["a"]} == {"a-0"}


def test_a_group_that_asks_for_nothing_goes_where_something_is_free():
    assert spots(pack([coming("a", 0, 0)], room([0], [0, 10]))["a"]) == {NumaPlace("n1", 1): 2}


def test_of_too_many_groups_the_largest_are_planned(monkeypatch):
    monkeypatch.setattr("extender.planning.packing.MOST_GROUPS", 1)
    assert {*pack([coming("a", 100, 100), coming("b", 1000, 1000)], room([4000]))} == {"b"}


MILLIS = st.lists(st.sampled_from([50, 500, 1000, 2500, 6000]), min_size=1, max_size=12)


@given(
    st.lists(MILLIS, min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from([0, 1000, 4000, 9000, 20_000]), min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_no_numa_node_is_planned_over_its_room_and_nobody_is_left_out_who_fits(groups, nodes):
    there = [coming(f"g{at}", *millis) for at, millis in enumerate(groups)]
    packed = pack(there, room(*nodes))
    asks = {pod.uid: pod.asks[0] for group in there for pod in group.pods}
    taken = Counter[NumaPlace]()
    for places in packed.values():
        for uid, place in places.items():
            taken[place] += asks[uid]
    left = {NumaPlace(f"n{a}", b): milli for a, node in enumerate(nodes) for b, milli in enumerate(node)}
    assert all(milli <= left[place] for place, milli in taken.items())
    most = max(milli - taken[place] for place, milli in left.items())
    planned = {uid for places in packed.values() for uid in places}
    if len(nodes) == 1:
        assert all(asks[uid] > most for uid in asks.keys() - planned)


@given(MILLIS, st.integers(0, 3))
def test_a_group_that_fits_one_numa_node_is_whole(millis, at):
    nodes = [[49], [49], [49], [49]]
    nodes[at] = [sum(millis)]
    assert spots(pack([coming("a", *millis)], room(*nodes))["a"]) == {NumaPlace(f"n{at}", 0): len(millis)}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_groups_are_packed_alike_in_any_order(seed):
    groups = [coming(f"g{at}", *[250 * (1 + (at * seed) % 5)] * (at + 1)) for at in range(6)]
    free = [[3000, 5000], [9000], [4000, 4000]]
    assert pack(groups, room(*free)) == pack(groups[::-1], room(*free))
