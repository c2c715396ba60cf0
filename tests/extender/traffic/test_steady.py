"""Groups that were found stay as they are while replicas come and go, and each membership's reason is told."""

from __future__ import annotations

import pytest

from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic, TrafficLearning
from extender.views.traffic_view import graph
from numakin.placement.traffic.graph import Flow
from tests.extender.traffic.talking import pod

TALK = {("web", "cart"): 400, ("cart", "redis"): 900, ("ads", "index"): 500, ("web", "ads"): 60}
"""Calls in a window."""

WINDOWS = range(1, 6)


class Shop:
    """Its calls are spread evenly over the replicas of both ends."""

    def __init__(self) -> None:
        self.learning = TrafficLearning()
        self.replicas: dict[str, list[str]] = {}
        self.now = 0.0
        for name in ("web", "cart", "redis", "ads", "index"):
            self.add(name)

    def add(self, workload: str) -> None:
        mine = self.replicas.setdefault(workload, [])
        uid = f"{workload}-{len(mine)}"
        mine.append(uid)
        self.learning.apply(Changes(rows=(pod(uid, workload, node="n"),)), self.now)

    def remove(self, workload: str) -> None:
        self.learning.apply(Changes(gone=(self.replicas[workload].pop(),)), self.now)

    def window(self) -> ClusterTraffic:
        self.now += 10
        flows = []
        for (client, server), calls in TALK.items():
            ends = [(a, b) for a in self.replicas[client] for b in self.replicas[server]]
            for a, b in ends:
                share = calls // len(ends)
                flows += [Flow(a, b, "tcp", 100 * share, share), Flow(b, a, "tcp", 900 * share, share)]
        self.learning.receive("n", flows, self.now)
        return self.learning.known(self.now)


@pytest.fixture
def shop() -> Shop:
    made = Shop()
    for _ in WINDOWS:
        known = made.window()
    assert known.members == {
        "shop/auto-ads": ["shop/Deployment/ads", "shop/Deployment/index"],
        "shop/auto-cart": ["shop/Deployment/cart", "shop/Deployment/redis", "shop/Deployment/web"],
    }
    return made


@pytest.mark.parametrize("workload", ["web", "cart", "redis", "ads"])
def test_a_replica_more_and_then_less_changes_no_group(shop: Shop, workload: str):
    before = shop.window().groups
    shop.add(workload)
    assert all(shop.window().groups == before for _ in WINDOWS)
    shop.remove(workload)
    assert all(shop.window().groups == before for _ in WINDOWS)


def test_each_membership_is_told_with_its_reason(shop: Shop):
    rows = {row["workload"].rpartition("/")[2]: row for row in graph(shop.window())["workloads"]}
    assert rows["redis"]["reason"] == "exchanges 100 % of its traffic within its namespace with cart"
    assert rows["web"]["reason"] == "exchanges 87 % of its traffic within its namespace with cart"
    assert all(row["learned"] and row["reason"] for row in rows.values())
