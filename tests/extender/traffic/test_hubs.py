"""Hubs in namespaces of their own glue no strangers: groups are as without them, and stay so from window to window."""

from __future__ import annotations

import pytest

from benchmarks.quality.hubs import HUBS, agreement, planted, steady
from extender.traffic.communities import partition

SEEDS = range(3)


def application(namespace: str) -> dict[tuple[str, str], float]:
    """A front end, and three services behind it of which each has a store."""
    weights = {}
    for service in ("cart", "ads", "pay"):
        weights[f"{namespace}/Deployment/{service}", f"{namespace}/Deployment/web"] = 10.0
        weights[f"{namespace}/Deployment/{service}", f"{namespace}/StatefulSet/{service}-db"] = 20.0
    return weights


THREE = application("a") | application("b") | application("c")
DNS = {("kube-system/Deployment/dns", f"{namespace}/Deployment/web"): 30.0 for namespace in "abc"}


def test_a_hub_is_a_member_of_nothing_and_changes_no_reason():
    everybody = {end for pair in THREE | DNS for end in pair}
    result = partition(THREE | DNS, everybody, {})
    assert result == partition(THREE, everybody, {})
    assert {member.partition("/")[0] for member in result.members} == {"a", "b", "c"}


@pytest.mark.parametrize("kinds", [*((kind,) for kind in HUBS), HUBS], ids=[*HUBS, "all"])
@pytest.mark.parametrize("seed", SEEDS)
def test_known_systems_are_grouped_as_if_the_hubs_were_not_there(kinds, seed):
    assert agreement(planted(seed, kinds), planted(seed, ())) == (1.0, 1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_membership_changes_from_window_to_window_of_the_same_rates(seed):
    assert steady(planted(seed)) == 1.0
