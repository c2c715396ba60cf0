"""Groups that wait are packed whole, before the first of their pods is placed."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planning.coming import Coming, Pod
from extender.planning.group_plan import Vacancy
from extender.planning.packing import pack
from extender.state.admission import NodeSet
from extender.state.columns.free_room import NumaPlace
from extender.state.node_domains import NodeDomains, label_keys
from tests.extender.planning.rooms import devices, room

GIB = 1 << 30


def pods(group: str, *millis: int, workload: str = "", memory: int = 0) -> list[Pod]:
    return [Pod(f"{group}-{at}", workload or f"{group}-{at}", (milli, memory, 1)) for at, milli in enumerate(millis)]


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


def test_one_that_is_cut_anyway_takes_no_room_that_makes_another_whole():
    packed = pack([coming("a", *[1000] * 10), coming("b", *[1000] * 4)], room([4000, 5000]))
    assert spots(packed["b"]) == {NumaPlace("n0", 0): 4}
    assert spots(packed["a"]) == {NumaPlace("n0", 1): 5}


def test_one_that_fits_a_node_and_no_numa_node_is_not_scattered_for_smaller_ones():
    small = [coming(f"s{at}", 1000) for at in range(2)]
    packed = pack([coming("a", *[1000] * 9), *small], room([5000, 5000], [1000], [1000]))
    assert {place.node for place in packed["a"].values()} == {"n0"}


@pytest.mark.parametrize("created", [True, False])
def test_a_group_that_has_begun_keeps_where_it_was_planned_while_nothing_brings_more_together(*, created: bool):
    rest = NumaPlace("n2", 0)
    group = coming("a", *[1000] * 4, here={NumaPlace("n0", 0): 2})
    before = {pod.uid: rest for pod in group.pods}
    group = group if created else replace(group, pods=(), later=group.pods)
    assert spots(pack([group], room([0, 0], [4000], [5000]))["a"]) == {NumaPlace("n1", 0): 4}
    assert spots(pack([group], room([0, 0], [4000], [5000]), before=before)["a"]) == {rest: 4}
    assert spots(pack([group], room([0, 4000], [0], [5000]), before=before)["a"]) == {NumaPlace("n0", 1): 4}


def test_who_has_no_room_any_more_where_it_was_planned_goes_elsewhere():
    group = coming("a", *[1000] * 3, here={NumaPlace("n0", 0): 2})
    before = {pod.uid: NumaPlace("n1", 0) for pod in group.pods}
    assert spots(pack([group], room([0], [0], [3000]), before=before)["a"]) == {NumaPlace("n2", 0): 3}


def test_memory_bounds_it_too():
    group = Coming("a", pods("a", 1000, 1000, memory=3))
    assert len(spots(pack([group], room([8000, 8000], memory=5))["a"])) == 2


class TestWhatKubeSchedulerHasLeft:
    """Kubelets keep some of a machine for themselves, so that a node gives less than its NUMA nodes have."""

    def test_a_group_goes_where_its_node_has_room_for_all_of_it(self):
        free = room([8000, 8000], [9000, 9000], left=[7500, 16_000])
        assert spots(pack([coming("a", *[1000] * 8)], free)["a"]) == {NumaPlace("n1", 0): 8}

    def test_the_groups_of_one_plan_count_together(self):
        free = room([8000, 8000], [9000, 9000], left=[15_500, 18_000])
        packed = pack([coming("a", *[1000] * 8), coming("b", *[1000] * 8)], free)
        assert [*map(spots, packed.values())] == [{NumaPlace("n0", 0): 8}, {NumaPlace("n1", 0): 8}]

    def test_one_that_no_numa_node_holds_goes_to_the_node_that_has_room_for_all(self):
        free = room([6000, 6000], [6000, 6000], left=[11_500, 12_000])
        assert {place.node for place in pack([coming("a", *[1000] * 12)], free)["a"].values()} == {"n1"}

    def test_memory_counts_likewise(self):
        free = room([8000], [9000])
        free.left[1, 0] = 3 * GIB
        packed = pack([Coming("a", pods("a", *[1000] * 4, memory=GIB))], free)
        assert spots(packed["a"]) == {NumaPlace("n1", 0): 4}


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
    packed = pack([coming("a", 1000, 1000, beyond=(3000, 0, 1))], room([3000, 6000]))
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
    group = Coming("g", [Pod(name, name, (1000, 0, 1)) for name in "abcd"])
    places = pack([group], room([2000, 2000]), talk)["g"]
    assert places["a"] == places["c"]
    assert places["b"] == places["d"]


def test_a_group_that_has_to_be_cut_is_cut_as_the_plan_by_its_traffic_has_it():
    group = Coming("g", [Pod(name, name, (1000, 0, 1)) for name in "abcd"])
    first, second = NumaPlace("n0", 0), NumaPlace("n0", 1)
    slots = {name: (Vacancy(first if name in "ad" else second, 1),) for name in "abcd"}
    places = pack([group], room([2000, 2000]), slots=slots)["g"]
    assert places == {"a": first, "d": first, "b": second, "c": second}


def test_a_pod_that_no_numa_node_holds_is_not_planned():
    packed = pack([coming("a", 1000, 9000)], room([4000, 4000]))
    assert {*packed["a"]} == {"a-0"}


def test_a_group_that_asks_for_nothing_goes_where_something_is_free():
    assert spots(pack([coming("a", 0, 0)], room([0], [0, 10]))["a"]) == {NumaPlace("n1", 1): 2}


def test_of_too_many_groups_the_largest_are_planned(monkeypatch):
    monkeypatch.setattr("extender.planning.packing.MOST_GROUPS", 1)
    assert {*pack([coming("a", 100, 100), coming("b", 1000, 1000)], room([4000]))} == {"b"}


def zones(*count: int) -> NodeDomains:
    """Zones of so many nodes each, n0 first."""
    names = (f"n{at}" for at in itertools.count())
    return NodeDomains(KEYS).after(
        {next(names): ("", f"z{zone}", "") for zone, many in enumerate(count) for _ in range(many)}, ()
    )


KEYS = label_keys(["rack"])


def test_a_group_that_no_node_holds_is_in_one_zone_where_one_holds_it():
    """The two nodes with most room are in different zones, neither of which holds it."""
    free = room([9000], [1000], [8000], [3000], [5000], [5000], [5000])
    places = pack([coming("a", *[1000] * 14)], free, domains=zones(2, 2, 3))["a"]
    assert spots(places) == {NumaPlace("n4", 0): 5, NumaPlace("n5", 0): 5, NumaPlace("n6", 0): 4}


def test_a_zone_counts_where_the_pods_themselves_fit():
    free = room([2900], [2900], [2900], [4000], [4000])
    places = pack([coming("a", 2000, 2000, 2000, 2000)], free, domains=zones(3, 2))["a"]
    assert {place.node for place in places.values()} == {"n3", "n4"}


def test_where_one_node_holds_it_zones_change_nothing():
    group, free = coming("a", *[1000] * 6), ([4000, 4000], [5000], [5000])
    assert pack([group], room(*free), domains=zones(1, 2)) == pack([group], room(*free))


def test_those_that_no_longer_fit_beside_the_members_go_to_their_rack_then_their_zone():
    racks = {"n0": ("r0", "z", ""), "n1": ("r1", "z", ""), "n2": ("r0", "z", ""), "n3": ("r0", "y", "")}
    near = NodeDomains(KEYS).after(racks, ())
    free = room([0], [5000], [5000], [9000])
    places = pack([coming("a", *[1000] * 8, here={NumaPlace("n0", 0): 9})], free, domains=near)["a"]
    assert spots(places) == {NumaPlace("n2", 0): 5, NumaPlace("n1", 0): 3}


def test_what_no_domain_holds_is_as_near_as_there_is_room():
    free = room([6000], [2000], [2000], [5000])
    places = pack([coming("a", *[1000] * 11)], free, domains=zones(3, 1))["a"]
    assert spots(places) == {NumaPlace("n0", 0): 6, NumaPlace("n1", 0): 2, NumaPlace("n2", 0): 2, NumaPlace("n3", 0): 1}


MILLIS = st.lists(st.sampled_from([50, 500, 1000, 2500, 6000]), min_size=1, max_size=12)


class TestHowManyPodsANodeTakes:
    def test_a_group_goes_where_all_of_it_is_taken(self):
        packed = pack([coming("a", *[100] * 9)], room([1000, 9000], [5000], pods=[8, 9]))
        assert spots(packed["a"]) == {NumaPlace("n1", 0): 9}

    def test_those_of_its_size_that_may_come_are_taken_too(self):
        packed = pack([coming("a", 100, 100, beyond=(300, 0, 3))], room([1000], [5000], pods=[4, 5]))
        assert spots(packed["a"]) == {NumaPlace("n1", 0): 2}

    def test_one_that_no_node_takes_is_on_the_fewest(self):
        packed = pack([coming("a", *[100] * 9)], room([9000], [9000], [9000, 9000], pods=[2, 3, 6]))
        assert spots(packed["a"]) == {NumaPlace("n2", 0): 6, NumaPlace("n1", 0): 3}

    def test_nodes_that_take_none_are_passed_over_however_roomy(self):
        nodes = [[20_000]] * 20 + [[500], [500]]
        packed = pack([coming("a", *[100] * 9)], room(*nodes, pods=[0] * 20 + [110, 110]))
        assert spots(packed["a"]) == {NumaPlace("n20", 0): 5, NumaPlace("n21", 0): 4}

    def test_groups_share_it(self):
        packed = pack([coming("a", *[100] * 5), coming("b", *[100] * 4)], room([1000], [5000], pods=[8, 110]))
        assert spots(packed["a"]) | spots(packed["b"]) == {NumaPlace("n0", 0): 5, NumaPlace("n1", 0): 4}

    def test_while_it_grows_it_goes_where_most_can_follow(self):
        packed = pack([coming("a", 100, 100, grows=True)], room([9000], [5000], pods=[4, 110]))
        assert spots(packed["a"]) == {NumaPlace("n1", 0): 2}


@given(
    st.lists(MILLIS, min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from([0, 1000, 4000, 9000, 20_000]), min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.sampled_from([1000, 5000, 12_000, 100_000]), min_size=4, max_size=4),
    st.lists(st.sampled_from([0, 2, 5, 110]), min_size=4, max_size=4),
)
def test_nothing_is_planned_over_its_room_and_nobody_is_left_out_who_fits(groups, nodes, given_by_nodes, pods):
    there = [coming(f"g{at}", *millis) for at, millis in enumerate(groups)]
    packed = pack(there, room(*nodes, left=given_by_nodes[: len(nodes)], pods=pods[: len(nodes)]))
    asks = {pod.uid: pod.asks[0] for group in there for pod in group.pods}
    taken = Counter[NumaPlace]()
    for places in packed.values():
        for uid, place in places.items():
            taken[place] += asks[uid]
    left = {NumaPlace(f"n{a}", b): milli for a, node in enumerate(nodes) for b, milli in enumerate(node)}
    assert all(milli <= left[place] for place, milli in taken.items())
    on_nodes = [sum(milli for place, milli in taken.items() if place.node == f"n{at}") for at in range(len(nodes))]
    assert all(milli <= given for milli, given in zip(on_nodes, given_by_nodes, strict=False))
    most = min(max(milli - taken[place] for place, milli in left.items()), given_by_nodes[0] - on_nodes[0])
    counts = Counter(place.node for places in packed.values() for place in places.values())
    assert all(counts[f"n{at}"] <= number for at, number in enumerate(pods))
    planned = {uid for places in packed.values() for uid in places}
    if len(nodes) == 1 and counts["n0"] < pods[0]:
        assert all(asks[uid] > most for uid in asks.keys() - planned)


WHERE = st.builds(NodeSet, st.frozensets(st.sampled_from(["n0", "n1", "n2"])), st.booleans())


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([500, 1000, 4000]), WHERE), max_size=6), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from([0, 1000, 4000, 9000]), min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from([{}, {"n0": ("x", ""), "n1": ("y", ""), "n2": ("x", ""), "n3": ("y", "")}]),
    st.data(),
)
def test_nobody_is_planned_where_he_may_not_go(groups, nodes, near, data):
    there = [
        Coming(
            f"g{at}", [Pod(f"g{at}-{n}", f"w{n % 2}", (milli, 0, 1), where) for n, (milli, where) in enumerate(pods)]
        )
        for at, pods in enumerate(groups)
    ]
    of_nodes = st.sampled_from([NumaPlace(f"n{at}", 0) for at in range(len(nodes))])
    before = {pod.uid: data.draw(of_nodes) for coming in there for pod in coming.pods if data.draw(st.booleans())}
    there = [replace(coming, here=Counter(data.draw(st.lists(of_nodes, max_size=2)))) for coming in there]
    packed = pack(there, room(*nodes), domains=NodeDomains(KEYS).after(near, ()), before=before)
    where = {pod.uid: pod.where for coming in there for pod in coming.pods}
    assert all(where[uid].has(place.node) for places in packed.values() for uid, place in places.items())


@given(MILLIS, st.integers(0, 3))
def test_a_group_of_one_pool_that_fits_a_numa_node_of_it_is_whole_there(millis, at):
    nodes = [[90_000], [90_000], [90_000], [90_000]]
    nodes[at] = [49, sum(millis)]
    pool = NodeSet(frozenset({f"n{at}"}), alone=True)
    group = Coming("a", [pod._replace(where=pool) for pod in pods("a", *millis)])
    assert spots(pack([group], room(*nodes))["a"]) == {NumaPlace(f"n{at}", 1): len(millis)}


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


def later(group: str, *millis: int, workload: str = "") -> list[Pod]:
    return pods(f"{group}-later", *millis, workload=workload)


def test_pods_that_are_about_to_be_created_have_their_places_with_the_others():
    packed = pack([coming("a", 1000, 1000, later=later("a", *[1000] * 3))], room([3000, 6000]))
    assert spots(packed["a"]) == {NumaPlace("n0", 1): 5}


def test_no_other_group_of_the_same_plan_gets_their_room():
    groups = [coming("a", 1000, later=later("a", *[1000] * 5)), coming("b", *[1000] * 3)]
    packed = pack(groups, room([6000], [9000]))
    assert spots(packed["a"]) == {NumaPlace("n0", 0): 6}
    assert spots(packed["b"]) == {NumaPlace("n1", 0): 3}


@pytest.mark.parametrize(
    "more", [{"later": later("a", *[1000] * 8)}, {"beyond": (8000, 0, 8)}], ids=["to come", "by size"]
)
def test_the_first_of_a_group_that_exceeds_a_node_are_in_the_zone_that_holds_all_of_it(more):
    near = {"n0": ("x", ""), "n1": ("y", ""), "n2": ("y", ""), "n3": ("x", "")}
    domains = NodeDomains(KEYS).after(near, ())
    packed = pack([coming("a", 1000, 1000, **more)], room([7000], [6000], [6000], [1000]), domains=domains)
    assert {place.node for place in packed["a"].values()} <= {"n1", "n2"}


GPU = "example.com/gpu"


def trainers(group: str, count: int, gpus: int = 1, milli: int = 1000) -> list[Pod]:
    return [
        pod._replace(devices=((GPU, gpus),)) for pod in pods(f"{group}-trainer", *[milli] * count, workload="trainer")
    ]


def feeders(group: str, count: int) -> list[Pod]:
    return pods(f"{group}-feeder", *[1000] * count, workload="feeder")


def beside(room, *nodes: dict[int, int]):
    """nodes: GPUs by the mask of the NUMA nodes that they are near to."""
    return replace(room, devices={GPU: devices(room.cpu.shape[1], *nodes)})


class TestDevices:
    def test_a_group_is_whole_on_the_numa_node_that_has_all_its_devices(self):
        group = Coming("a", [*feeders("a", 2), *trainers("a", 2)])
        free = beside(room([4000, 6000], [9000, 8000]), {1: 1, 2: 1}, {1: 1, 2: 3})
        assert spots(pack([group], free)["a"]) == {NumaPlace("n1", 1): 4}

    def test_one_that_has_to_be_cut_has_each_pod_where_its_device_is_and_the_others_beside_them(self):
        """Though there is a node where all would be beside each other, without a device."""
        group = Coming("a", [*feeders("a", 6), *trainers("a", 2)])
        free = beside(room([4000, 4000], [9000, 0]), {1: 1, 2: 1}, {})
        places = pack([group], free)["a"]
        assert spots(places) == {NumaPlace("n0", 0): 4, NumaPlace("n0", 1): 4}
        assert places["a-trainer-0"] != places["a-trainer-1"]

    def test_nodes_with_devices_are_found_among_many_that_are_roomier(self):
        nodes = [[9000]] * 20 + [[2000]]
        free = beside(room(*nodes), *[{}] * 20, {1: 1})
        places = pack([Coming("a", [*feeders("a", 3), *trainers("a", 1)])], free)["a"]
        assert places["a-trainer-0"] == NumaPlace("n20", 0)

    def test_two_groups_have_no_device_in_common(self):
        groups = [Coming(name, [*feeders(name, 1), *trainers(name, 1)]) for name in "ab"]
        packed = pack(groups, beside(room([9000, 9000]), {1: 1, 2: 1}))
        assert {*spots(packed["a"]), *spots(packed["b"])} == {NumaPlace("n0", 0), NumaPlace("n0", 1)}

    def test_a_larger_group_that_asks_for_none_leaves_it_the_room_beside_them(self):
        groups = [coming("a", *[1000] * 6), Coming("b", trainers("b", 2))]
        packed = pack(groups, beside(room([6000, 7000]), {1: 2}))
        assert spots(packed["b"]) == {NumaPlace("n0", 0): 2}
        assert spots(packed["a"]) == {NumaPlace("n0", 1): 6}

    def test_no_pod_is_planned_where_no_device_is_left_for_it(self):
        packed = pack([Coming("a", [*trainers("a", 3), *feeders("a", 1)])], beside(room([9000], [9000]), {1: 2}, {}))
        assert spots(packed["a"]) == {NumaPlace("n0", 0): 3}

    def test_a_pod_is_not_planned_again_where_its_device_is_gone(self):
        group, before = Coming("a", trainers("a", 1)), {"a-trainer-0": NumaPlace("n0", 0)}
        free = beside(room([9000, 9000]), {2: 1})
        assert spots(pack([group], free, before=before)["a"]) == {NumaPlace("n0", 1): 1}

    def test_what_may_still_ask_for_some_counts_for_where(self):
        group = Coming("a", feeders("a", 2), beyond=(1000, 0, 1), beyond_devices=((GPU, 1),))
        assert spots(pack([group], beside(room([4000, 5000]), {2: 1}))["a"]) == {NumaPlace("n0", 1): 2}

    def test_no_pod_has_some_far_from_it_that_might_have_all_near_elsewhere(self):
        free = beside(room([9000, 9000], [10_000, 9000]), {1: 1, 2: 1}, {1: 2})
        packed = pack([Coming(name, trainers(name, 1, gpus=2)) for name in "ab"], free)
        assert [spots(packed[name]) for name in "ab"] == [{NumaPlace("n1", 0): 1}, {}]

    def test_one_that_asks_for_more_than_any_numa_node_has_is_where_most_are(self):
        free = beside(room([9000, 9000], [9000, 9000]), {1: 3, 2: 4}, {1: 4})
        assert spots(pack([Coming("a", trainers("a", 1, gpus=6))], free)["a"]) == {NumaPlace("n0", 1): 1}

    def test_devices_near_to_all_bound_none_of_them(self):
        free = beside(room([1000, 2000], [9000, 9000]), {0: 2, 3: 1}, {})
        assert spots(pack([Coming("a", trainers("a", 3))], free)["a"]) == {
            NumaPlace("n0", 0): 1, NumaPlace("n0", 1): 2
        }  # fmt: skip

    def test_a_group_lies_in_the_zone_that_has_its_devices(self):
        free = beside(room([4000], [4000], [3000], [3000]), {1: 1}, {1: 1}, {1: 2}, {1: 2})
        places = pack([Coming("a", trainers("a", 4))], free, domains=zones(2, 2))["a"]
        assert {place.node for place in places.values()} == {"n2", "n3"}


COUNTS = st.dictionaries(st.sampled_from([0, 1, 2, 3]), st.integers(0, 4), max_size=4)


@given(
    st.lists(st.lists(st.tuples(st.sampled_from([500, 1000, 4000]), st.sampled_from([0, 0, 1, 2, 5])), max_size=6),
             min_size=1, max_size=4),
    st.lists(st.tuples(st.lists(st.sampled_from([0, 1000, 4000, 9000]), min_size=2, max_size=2), COUNTS),
             min_size=1, max_size=4),
    st.sampled_from([{}, {"n0": ("x", ""), "n1": ("y", ""), "n2": ("x", ""), "n3": ("y", "")}]),
    st.data(),
)  # fmt: skip
def test_who_is_planned_has_his_devices_and_no_other_has_them(groups, nodes, near, data):
    """By Hall's theorem: so many are near to each set of NUMA nodes as pods there ask for that can be near to theirs."""
    there = [
        Coming(f"g{at}", [
            Pod(f"g{at}-{n}", f"w{n % 2}", (milli, 0, 1), devices=((GPU, gpus),) if gpus else ())
            for n, (milli, gpus) in enumerate(asked)
        ])
        for at, asked in enumerate(groups)
    ]  # fmt: skip
    of_nodes = st.sampled_from([NumaPlace(f"n{at}", 0) for at in range(len(nodes))])
    before = {pod.uid: data.draw(of_nodes) for coming in there for pod in coming.pods if data.draw(st.booleans())}
    there = [replace(coming, here=Counter(data.draw(st.lists(of_nodes, max_size=2)))) for coming in there]
    free = beside(room(*(cpu for cpu, _ in nodes)), *(counts for _, counts in nodes))
    packed = pack(there, free, domains=NodeDomains(KEYS).after(near, ()), before=before)
    asks = {pod.uid: dict(pod.devices).get(GPU, 0) for coming in there for pod in coming.pods}
    most = free.devices[GPU].most
    for at, (_, counts) in enumerate(nodes):
        planned = [
            (place.numa_node, asks[uid])
            for places in packed.values() for uid, place in places.items() if place.node == f"n{at}"
        ]  # fmt: skip
        assert sum(count for _, count in planned) <= sum(counts.values())
        for homes in (1, 2, 3):
            near = sum(count for mask, count in counts.items() if not mask or mask & homes)
            assert sum(count for home, count in planned if homes >> home & 1 and count <= most) <= near
