"""A workload that nobody was seen to talk with is expected to talk as the others of its circle do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.traffic.silent import MOST_PEERS, SHARE, expected

SHOP = dict.fromkeys(("web", "cart", "db", "new"), "shop")
TALK = {("cart", "web"): 30.0, ("cart", "db"): 10.0}


def test_it_is_drawn_to_those_that_talk_most_by_how_much_each_does():
    pairs = expected(TALK, SHOP)
    assert set(pairs) == {("cart", "new"), ("db", "new"), ("new", "web")}
    assert pairs["cart", "new"] == pytest.approx(4 * pairs["db", "new"])
    assert pairs["new", "web"] == pytest.approx(3 * pairs["db", "new"])


def test_in_all_by_a_share_of_what_the_median_workload_exchanges():
    assert sum(expected(TALK, SHOP).values()) == pytest.approx(SHARE * 30)


def test_who_was_seen_to_talk_is_left_alone():
    assert expected(TALK, dict.fromkeys(("web", "cart", "db"), "shop")) == {}


def test_another_circles_workloads_draw_nobody():
    assert expected(TALK, {**SHOP, "new": "billing"}) == {}


def test_where_nobody_talks_nothing_is_expected():
    assert expected({}, SHOP) == {}
    assert expected({("cart", "web"): 0.0}, SHOP) == {}


def test_in_a_large_circle_only_those_that_talk_most_draw_it():
    talk = {(f"w{at:03}", "hub"): float(at + 1) for at in range(100)}
    circle = dict.fromkeys(["new", "hub", *(end for end, _ in talk)], "shop")
    pairs = expected({(min(pair), max(pair)): weight for pair, weight in talk.items()}, circle)
    peers = {end for pair in pairs for end in pair} - {"new"}
    assert peers == {"hub", *(f"w{at:03}" for at in range(100 - MOST_PEERS + 1, 100))}


NAMES = st.sampled_from("abcdefgh")


@given(
    st.dictionaries(st.tuples(NAMES, NAMES).map(lambda ends: (min(ends), max(ends))), st.floats(0, 1e9)),
    st.dictionaries(NAMES, st.sampled_from(["x", "y"])),
)
def test_what_was_seen_is_never_doubted_and_nobody_else_gains(weights, circles):
    pairs = expected(weights, circles)
    talking = {end for pair, weight in weights.items() if weight > 0 for end in pair}
    for (end, other), weight in pairs.items():
        assert end < other
        assert weight >= 0
        assert len({end, other} & talking) == 1
        assert circles[end] == circles[other]


def test_the_pairs_come_in_one_order_whatever_the_hash_seed():
    """A search draws lots over them: another order would be another plan for the same traffic."""
    names = [f"new-{at}" for at in range(20)]
    pairs = expected(TALK, SHOP | dict.fromkeys(names, "shop"))
    assert list(dict.fromkeys(end for pair in pairs for end in pair if end.startswith("new"))) == sorted(
        ["new", *names]
    )
