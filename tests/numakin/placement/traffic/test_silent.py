"""A workload that nobody was seen to talk with is expected to talk as the others of its namespace and group do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.traffic.silent import MOST_PEERS, SHARE, expected

SHOP = dict.fromkeys(("ns/web", "ns/cart", "ns/db", "ns/new"), "shop")
TALK = {("ns/cart", "ns/web"): 30.0, ("ns/cart", "ns/db"): 10.0}


def test_it_is_drawn_to_those_that_talk_most_by_how_much_each_does():
    pairs = expected(TALK, SHOP)
    assert set(pairs) == {("ns/cart", "ns/new"), ("ns/db", "ns/new"), ("ns/new", "ns/web")}
    assert pairs["ns/cart", "ns/new"] == pytest.approx(4 * pairs["ns/db", "ns/new"])
    assert pairs["ns/new", "ns/web"] == pytest.approx(3 * pairs["ns/db", "ns/new"])


def test_in_all_by_a_share_of_what_the_median_workload_exchanges():
    assert sum(expected(TALK, SHOP).values()) == pytest.approx(SHARE * 30)


def test_who_was_seen_to_talk_is_left_alone():
    assert expected(TALK, dict.fromkeys(("ns/web", "ns/cart", "ns/db"), "shop")) == {}


def test_another_groups_or_namespaces_workloads_draw_nobody():
    assert expected(TALK, {**SHOP, "ns/new": "billing"}) == {}
    assert expected(TALK, {"ns/web": "shop", "ns/cart": "shop", "ns/db": "shop", "other/new": "shop"}) == {}


def test_where_nobody_talks_nothing_is_expected():
    assert expected({}, SHOP) == {}
    assert expected({("ns/cart", "ns/web"): 0.0}, SHOP) == {}


def test_in_a_large_group_only_those_that_talk_most_draw_it():
    talk = {(f"ns/w{at:03}", "ns/hub"): float(at + 1) for at in range(100)}
    group = dict.fromkeys(["ns/new", "ns/hub", *(end for end, _ in talk)], "shop")
    pairs = expected({(min(pair), max(pair)): weight for pair, weight in talk.items()}, group)
    peers = {end for pair in pairs for end in pair} - {"ns/new"}
    assert peers == {"ns/hub", *(f"ns/w{at:03}" for at in range(100 - MOST_PEERS + 1, 100))}


NAMES = st.sampled_from([f"{namespace}/{name}" for namespace in ("n", "m") for name in "abcd"])


@given(
    st.dictionaries(st.tuples(NAMES, NAMES).map(lambda ends: (min(ends), max(ends))), st.floats(0, 1e9)),
    st.dictionaries(NAMES, st.sampled_from(["", "x", "y"])),
)
def test_what_was_seen_is_never_doubted_and_nobody_else_gains(weights, groups):
    pairs = expected(weights, groups)
    talking = {end for pair, weight in weights.items() if weight > 0 for end in pair}
    for (end, other), weight in pairs.items():
        assert end < other
        assert weight >= 0
        assert len({end, other} & talking) == 1
        assert groups[end] == groups[other]
        assert end.partition("/")[0] == other.partition("/")[0]


def test_the_pairs_come_in_one_order_whatever_the_hash_seed():
    """A search draws lots over them: another order would be another plan for the same traffic."""
    names = [f"ns/new-{at}" for at in range(20)]
    pairs = expected(TALK, SHOP | dict.fromkeys(names, "shop"))
    assert list(dict.fromkeys(end for pair in pairs for end in pair if end.startswith("ns/new"))) == sorted(
        ["ns/new", *names]
    )
