"""Which nodes are near each other is read from their labels."""

from __future__ import annotations

import pytest

from extender.state.kins import Kins
from extender.state.node_domains import NEAREST, REGION, ZONE, NodeDomains, label_keys, values
from numakin.placement.decide.decide import Kin

RACK = "example.com/rack"
KEYS = label_keys([RACK])


def labelled(**nodes: tuple[str, str, str]) -> NodeDomains:
    """By node its rack, zone and region."""
    return NodeDomains(KEYS).after(nodes, ())


SITE = labelled(
    a1=("r1", "a", "x"), a2=("r1", "a", "x"), a3=("r2", "a", "x"), b1=("r1", "b", "x"), c1=("", "c", "y"), c2=("", "c", "y"),
    bare=("", "", "x"), lost=("r9", "", "x"), found=("r9", "", "x"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "nearness"),
    [
        ("a1", "a2", NEAREST),
        ("a1", "a3", NEAREST / 2),
        ("a1", "b1", NEAREST / 4),
        ("a1", "bare", NEAREST / 4),
        ("c1", "c2", NEAREST / 2),
        ("a1", "c1", 0.0),
        ("lost", "found", NEAREST),
        ("lost", "a1", NEAREST / 4),
        ("a1", "unknown", 0.0),
    ],
    ids=[
        "one rack", "one zone", "racks of one name in two zones", "no zone", "no rack", "two regions", "a rack without a zone",
        "a rack that no other node has", "no labels",
    ],
)  # fmt: skip
def test_nodes_are_as_near_as_the_first_label_that_they_have_alike(one, other, nearness):
    assert SITE.nearness(one, other) == SITE.nearness(other, one) == nearness


def test_kin_on_near_nodes_pull_less_than_those_on_any_numa_node_of_one_machine():
    far = 10 / 57
    assert 0.7 * NEAREST / far < 0.7 - 0.3


def test_zone_and_region_count_after_the_operators_own_labels_and_where_these_name_them():
    assert label_keys([]) == (ZONE, REGION)
    assert label_keys([RACK]) == (RACK, ZONE, REGION)
    assert label_keys([REGION]) == (REGION, ZONE)


def test_a_node_that_has_none_of_the_labels_has_no_values():
    assert values({"kubernetes.io/hostname": "n"}, KEYS) == ()
    assert values({ZONE: "a"}, KEYS) == ("", "a", "")


def test_what_changes_is_taken_over_and_what_does_not_is_the_same_value():
    assert SITE.after({"a1": ("r1", "a", "x"), "other": ()}, ["unknown"]) is SITE
    moved = SITE.after({"a1": ("r1", "b", "x")}, ["a2"])
    assert (moved.nearness("a1", "b1"), moved.nearness("a1", "a2")) == (NEAREST, 0.0)
    assert moved.after({"a1": ()}, []).nearness("a1", "b1") == 0.0


def test_where_kin_pull_from_is_said_the_nearest_first():
    near = {"a2": Kin(elsewhere=7), "a3": Kin(elsewhere=5), "c1": Kin(elsewhere=8), "a1": Kin(elsewhere=10)}
    kins = Kins(Kin(elsewhere=10), near)
    assert SITE.beside("a1", kins) == [
        f"30% of its kin are on other nodes of {RACK}=r1",
        f"50% of its kin are on other nodes of {ZONE}=a",
    ]
    assert SITE.beside("bare", Kins()) == []
