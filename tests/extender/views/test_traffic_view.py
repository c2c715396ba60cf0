"""What of the cluster's graph is answered where not all of it is."""

from __future__ import annotations

import pytest

from extender.traffic.known import ClusterTraffic
from extender.views import traffic_view
from numakin.placement.traffic.graph import Amount, Graph, Key

HEAVY = [Key(f"big/Deployment/a{at}", f"big/Deployment/b{at}", "tcp") for at in range(3)]
LIGHT = Key("shop/Deployment/cart", "shop/Deployment/redis", "tcp")
INWARDS = Key("big/Deployment/a0", "shop/Deployment/cart", "tcp")
NAMESAKE = Key("shop2/Deployment/cart", "shop2/Deployment/redis", "tcp")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> ClusterTraffic:
    """More edges than one answer has, those of namespace shop the lightest."""
    monkeypatch.setattr(traffic_view, "MOST_EDGES", len(HEAVY))
    rates = {key: Amount(1e6, 1e4) for key in HEAVY} | {key: Amount(1.0, 1.0) for key in (LIGHT, INWARDS, NAMESAKE)}
    expected = {key[:2]: 9.0 for key in HEAVY} | {key[:2]: 1.0 for key in (LIGHT, INWARDS, NAMESAKE)}
    declared = {"shop/Deployment/idle": "", "big/Deployment/idle": ""}
    return ClusterTraffic(graph=Graph(rates), expected=expected, declared=declared)


def ends(rows: list[dict[str, str]]) -> set[tuple[str, str]]:
    return {(row["source"], row["target"]) for row in rows}


def test_of_all_edges_the_heaviest_are_told(known):
    answer = traffic_view.graph(known)
    assert ends(answer["edges"]) == ends(answer["expected"]) == {key[:2] for key in HEAVY}
    assert answer["edges_known"] == len(HEAVY) + 3


def test_a_namespace_s_edges_are_told_however_heavy_those_of_others_are(known):
    answer = traffic_view.graph(known, "shop")
    assert ends(answer["edges"]) == ends(answer["expected"]) == {LIGHT[:2], INWARDS[:2]}
    assert [row["workload"] for row in answer["workloads"]] == [
        "big/Deployment/a0", "shop/Deployment/cart", "shop/Deployment/idle", "shop/Deployment/redis"
    ]  # fmt: skip
    assert answer["edges_known"] == len(HEAVY) + 3
