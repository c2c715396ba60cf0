"""What is known between workloads, whose pods come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.state import pod_index
from extender.state.pods import Changes
from extender.traffic.graph import ClusterGraph
from numakin.placement.traffic.graph import HALF_LIFE_S, Amount, Key
from tests.extender.traffic.graphs import CART, NOW, REDIS, STRANGER, WEB, made
from tests.extender.traffic.talking import flow, pod


def between_workloads(graph: ClusterGraph, now: float) -> dict[tuple[str, str], float]:
    result = graph.workloads(graph.pods(now), now).edges
    return {(key.source.rpartition("/")[2], key.target.rpartition("/")[2]): rate.bytes for key, rate in result.items()}


def test_replicas_add_up_to_workloads():
    rows = [pod(f"{name}-{at}", name, node="a") for name in ("cart", "redis") for at in range(2)]
    graph = made(*rows)
    graph.add("a", [flow(f"cart-{a}", f"redis-{b}", 1000) for a in range(2) for b in range(2)], NOW)
    gain = 0.6931471805599453 / HALF_LIFE_S
    assert between_workloads(graph, NOW) == {("cart", "redis"): pytest.approx(4000 * gain)}


def test_a_rolling_update_forgets_nothing():
    graph = made()
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    known = between_workloads(graph, NOW)
    renewed = pod("cart-2", "cart", node="b", ip="10.0.1.2")
    graph.apply(Changes(rows=(renewed,), gone=("cart-1",)), NOW + 1)
    assert between_workloads(graph, NOW + 1) == {pair: pytest.approx(rate, rel=0.01) for pair, rate in known.items()}


def test_what_was_learned_of_a_workload_outlives_its_pods():
    """Scaled to nothing overnight, it finds its kin in the morning; then it fades like any traffic."""
    graph = made()
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    known = between_workloads(graph, NOW)
    assert known
    graph.apply(Changes(gone=("cart-1",)), NOW)
    night = NOW
    for _ in range(50):
        night += HALF_LIFE_S
        graph.tidy(night)
        assert between_workloads(graph, night) == known
    graph.apply(Changes(rows=(replace(CART, uid="cart-2"),)), night)
    assert between_workloads(graph, night) == known
    later = night + HALF_LIFE_S
    assert between_workloads(graph, later) == {pair: pytest.approx(rate / 2) for pair, rate in known.items()}


def test_what_is_known_and_what_is_seen_add_up_to_what_is_true():
    """After a restart the same traffic goes on: its rate must neither double nor sag."""
    graph = made()
    steady = 1000 * HALF_LIFE_S / 60
    key = Key("shop/Deployment/cart", "shop/Deployment/web", "tcp")
    graph.remembered.restored({key: Amount(1000.0, 0.0)}, NOW)
    now, seen = NOW, []
    for _ in range(300):
        seen.append(between_workloads(graph, now)["cart", "web"])
        now += HALF_LIFE_S / 60
        graph.add("a", [flow("cart-1", "web-1", round(steady), 0)], now)
    assert seen == [pytest.approx(1000, rel=0.02)] * len(seen)


def test_remembered_edges_are_bounded_too():
    graph = ClusterGraph()
    graph.remembered._most = 3
    edges = {Key(f"shop/Job/j{at}", "shop/Deployment/web", "tcp"): Amount(at, 0.0) for at in range(1, 6)}
    graph.remembered.restored(edges, NOW)
    assert set(between_workloads(graph, NOW)) == {(f"j{at}", "web") for at in (3, 4, 5)}
    assert graph.dropped == 2


def test_a_workload_that_never_comes_back_is_forgotten_in_time():
    graph = made()
    graph.add("a", [flow("cart-1", "web-1")], NOW)
    graph.workloads(graph.pods(NOW), NOW)
    graph.apply(Changes(whole=True), NOW)
    assert between_workloads(graph, NOW + 86_400)
    graph.tidy(NOW + 16 * 86_400)
    assert between_workloads(graph, NOW + 16 * 86_400) == {}


def test_where_only_kube_scheduler_tells_of_pods_they_are_known_too(monkeypatch):
    monkeypatch.setattr(pod_index, "MOST_ASKED", 2)
    graph = ClusterGraph()
    for row in (CART, WEB, STRANGER):
        graph.asked(replace(row, ip="", node=""), NOW)
    graph.add("a", [flow("cart-1", "web-1")], NOW)
    assert set(between_workloads(graph, NOW)) == {("cart", "web")}
    graph.asked(replace(REDIS, ip="", node=""), NOW)
    assert {name.rpartition("/")[2] for name in graph.pod_index.replicas()} == {"web", "redis"}
