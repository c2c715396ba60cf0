"""Hubs glue no strangers: whatever serves many applications is a member of none, and groups are as without it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.quality.hubs import HUBS, agreement, planted
from extender.traffic.communities import partition
from extender.traffic.exchanged import Traffic
from extender.traffic.hubs import hubs


def hubs_of(weights, before=()):
    return hubs(Traffic.among({end for pair in weights for end in pair}, weights), before)


def application(namespace: str, scale: float = 1.0) -> dict[tuple[str, str], float]:
    """A front end, and three services behind it of which each has a store."""
    weights = {}
    for service in ("cart", "ads", "pay"):
        weights[f"{namespace}/Deployment/{service}", f"{namespace}/Deployment/web"] = 10 * scale
        weights[f"{namespace}/Deployment/{service}", f"{namespace}/StatefulSet/{service}-db"] = 20 * scale
    return weights


THREE = application("a") | application("b") | application("c")
DNS = {("kube-system/Deployment/dns", f"{namespace}/Deployment/web"): 3.0 for namespace in "abc"}


def test_who_serves_three_applications_is_a_hub():
    assert hubs_of(THREE | DNS) == {"kube-system/Deployment/dns"}


def test_the_front_end_of_an_application_is_none():
    assert hubs_of(THREE) == frozenset()


def test_of_two_applications_nobody_can_tell():
    two = {pair: weight for pair, weight in (THREE | DNS).items() if not pair[1].startswith("c/")}
    assert hubs_of(two) == frozenset()


def test_where_each_service_has_its_own_namespace_nobody_is_a_hub():
    apart = {
        (f"{a.rpartition('/')[2]}/Deployment/x", f"{b.rpartition('/')[2]}/Deployment/x"): weight
        for (a, b), weight in application("a").items()
    }
    assert hubs_of(apart) == frozenset()


def test_who_calls_other_applications_now_and_then_stays_with_its_own():
    guest = {(f"{namespace}/Deployment/web", "a/Deployment/web"): 2.0 for namespace in "bc"}
    assert hubs_of(THREE | guest) == frozenset()


def test_a_hub_stays_one_when_an_application_grows_a_little():
    grown = application("a") | application("b") | application("c")
    dns = {("kube-system/Deployment/dns", f"{name}/Deployment/web"): weight for name, weight in (("a", 20.0), ("b", 2.0), ("c", 2.0))}  # fmt: skip
    assert hubs_of(grown | dns) == frozenset(), "a has more than four fifths"
    assert hubs_of(grown | dns, {"kube-system/Deployment/dns"}) == {"kube-system/Deployment/dns"}


def test_a_hub_is_a_member_of_nothing():
    weights = THREE | DNS
    result = partition(weights, {end for pair in weights for end in pair}, {})
    assert result.hubs == {"kube-system/Deployment/dns"}
    assert result.hubs.isdisjoint(result.members)
    assert {member.partition("/")[0] for member in result.members} == {"a", "b", "c"}
    assert all(len({member.partition("/")[0] for member in members}) == 1 for members in result.groups().values())


@pytest.mark.parametrize("kinds", [*((kind,) for kind in HUBS), HUBS], ids=[*HUBS, "all"])
@pytest.mark.parametrize("seed", range(3))
def test_known_systems_are_grouped_as_if_the_hubs_were_not_there(kinds, seed):
    precision, recall = agreement(planted(seed, kinds), planted(seed, ()))
    assert precision >= 0.95
    assert recall >= 0.95


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.tuples(*[st.builds("{}/Deployment/{}".format, st.sampled_from("abcd"), st.integers(0, 4))] * 2),
        st.floats(0.1, 100),
        max_size=30,
    )
)
def test_the_same_traffic_gives_the_same_hubs_and_they_settle(weights):
    first = hubs_of(weights)
    assert first == hubs_of(dict(reversed(weights.items())))
    assert first <= hubs_of(weights, first)
