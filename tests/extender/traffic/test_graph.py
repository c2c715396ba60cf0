"""What many enforcers tell of traffic, joined: each pair once, addresses found, faded, bounded, remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.state.pod_index import LINGER_S, RemoteEnd, address
from extender.state.pods import Changes
from extender.traffic import graph as cluster_graph
from extender.traffic.graph import WAIT_S, ClusterGraph
from numakin.placement.model.errors import BadTraffic
from numakin.placement.traffic.graph import HALF_LIFE_S, Key
from tests.extender.traffic.graphs import CART, NOW, REDIS, bytes_between, made
from tests.extender.traffic.talking import flow, pod


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("10.0.0.7", RemoteEnd("10.0.0.7")),
        ("10.0.0.7:80", RemoteEnd("10.0.0.7", 80)),
        ("fd00::1", RemoteEnd("fd00::1")),
        ("[fd00::1]:80", RemoteEnd("fd00::1", 80)),
        ("[FD00:0::1]:80", RemoteEnd("fd00::1", 80)),
        ("[::ffff:10.0.0.7]:80", RemoteEnd("10.0.0.7", 80)),
        ("8d5c3f0e-7a41-4a8e-9f0c-4f3b7e8a2a11", None),
        ("0123456789abcdef0123456789abcdef", None),
        ("10.0.0.7:http", None),
        ("shop.example", None),
    ],
)
def test_an_endpoint_is_an_address_or_a_pod(endpoint, expected):
    assert address(endpoint) == expected


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ([("a", flow("cart-1", "web-1"))], {("cart-1", "web-1"): 1000}),
        ([("b", flow("10.0.0.1:6379", "redis-1", server=True))], {("cart-1", "redis-1"): 1000}),
        ([("a", flow("cart-1", "10.0.1.1:6379"))], {("cart-1", "redis-1"): 1000}),
        ([("b", flow("redis-1", "[fd00::1]:6379", server=True))], {("redis-1", "web-1"): 1000}),
        ([("a", flow("cart-1", "10.96.0.10:6379"))], {}),
        ([("a", flow("cart-1", "10.0.1.9:80"))], {}),
        ([("a", flow("10.0.1.1:80", "10.0.0.1:80"))], {}),
        ([("a", flow("cart-1", "10.0.0.1:80"))], {}),
    ],
    ids=[
        "one node",
        "the server tells",
        "the client tells",
        "IPv6",
        "a Service",
        "a pod that has not opted in",
        "no pod of the node",
        "a pod with itself",
    ],
)
def test_traffic_is_joined_to_pods(received, expected):
    graph = made()
    for node, first in received:
        graph.add(node, [first], NOW)
    assert bytes_between(graph) == expected


def test_of_a_pair_on_two_nodes_the_servers_word_counts():
    graph = made()
    graph.add("a", [flow("cart-1", "10.0.1.1:6379", 900), flow("10.0.1.1:6379", "cart-1", 4000)], NOW)
    graph.add("b", [flow("10.0.0.1:6379", "redis-1", 1000, server=True)], NOW)
    assert bytes_between(graph) == {("cart-1", "redis-1"): 1000, ("redis-1", "cart-1"): 4000}


def test_who_both_serves_and_asks_on_one_port_is_counted_for_both():
    """Peers of one kind (members of an etcd, of a Cassandra) ask each other on the same port."""
    graph = made()
    graph.add("a", [flow("cart-1", "10.0.1.1:2380", 100), flow("cart-1", "10.0.1.1:2380", 7, server=True)], NOW)
    graph.add("b", [flow("10.0.0.1:2380", "redis-1", 100, server=True), flow("10.0.0.1:2380", "redis-1", 7)], NOW)
    assert bytes_between(graph) == {("cart-1", "redis-1"): 107}


def test_where_no_port_tells_who_serves_the_receivers_word_counts():
    graph = made()
    graph.add("a", [flow("cart-1", "10.0.1.1", 900)], NOW)
    graph.add("b", [flow("10.0.0.1", "redis-1", 1000)], NOW)
    assert bytes_between(graph) == {("cart-1", "redis-1"): 1000}


def test_the_clients_word_counts_again_when_the_servers_node_falls_silent():
    graph = made()
    graph.add("b", [flow("10.0.0.1:6379", "redis-1", 1000, server=True)], NOW)
    later = NOW + 1.1 * HALF_LIFE_S
    graph.add("a", [flow("cart-1", "10.0.1.1:6379", 5000)], later)
    assert bytes_between(graph, later) == {("cart-1", "redis-1"): 5000}


def test_behind_a_service_only_the_server_knows_the_pair():
    graph = made()
    graph.add("a", [flow("cart-1", "10.96.0.10:6379", 1000)], NOW)
    graph.add("b", [flow("10.0.0.1:6379", "redis-1", 1000, server=True)], NOW)
    assert bytes_between(graph) == {("cart-1", "redis-1"): 1000}
    graph.tidy(NOW + WAIT_S + 1)
    assert graph.fates.unresolved == 1000


def test_a_node_s_address_is_the_pod_that_was_seen_to_serve_the_port():
    graph = made()
    asks = flow("cart-1", "192.168.0.2:9100", 500)
    graph.add("a", [asks], NOW)
    assert bytes_between(graph) == {}
    graph.add("b", [flow("host-1", "10.0.1.9:9100", 1, server=True)], NOW)
    graph.add("a", [asks, flow("cart-1", "192.168.0.2:10250", 9)], NOW)
    assert bytes_between(graph) == {("cart-1", "host-1"): 1000}


def test_a_client_on_its_node_s_network_is_known_by_its_own_node_alone():
    graph = made()
    graph.add("a", [flow("192.168.0.2:80", "cart-1", 700, server=True)], NOW)
    assert bytes_between(graph) == {}
    graph.add("b", [flow("host-1", "10.0.0.1:80", 700)], NOW)
    assert bytes_between(graph) == {("host-1", "cart-1"): 700}


def test_a_node_can_t_tell_of_another_node_s_pods():
    graph = made()
    graph.add("b", [flow("cart-1", "web-1"), flow("cart-1", "10.0.1.1:80")], NOW)
    assert bytes_between(graph) == {}
    assert graph.fates.externally_managed == 2000


def test_traffic_of_an_address_waits_for_its_pod():
    graph = made(CART)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    assert bytes_between(graph) == {}
    assert graph.waiting_bytes == 1000
    graph.apply(Changes(rows=(replace(REDIS, ip=""),)), NOW + 10)
    graph.apply(Changes(rows=(REDIS,)), NOW + 20)
    assert bytes_between(graph) == {("cart-1", "redis-1"): 1000}
    assert graph.waiting_bytes == 0


def test_it_does_not_wait_for_ever():
    graph = made(CART)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    graph.tidy(NOW + WAIT_S + 1)
    graph.apply(Changes(rows=(REDIS,)), NOW + WAIT_S + 1)
    assert bytes_between(graph) == {}
    assert graph.fates.unresolved == 1000


def test_no_more_waits_than_the_bound(monkeypatch):
    monkeypatch.setattr(cluster_graph, "MOST_WAITING", 3)
    graph = made(CART)
    graph.add("a", [flow("cart-1", f"10.9.0.{at}:80") for at in range(5)], NOW)
    assert (graph.waiting_bytes, graph.fates.unresolved) == (3000, 2000)


def test_an_address_outlives_its_pod_a_little():
    """Windows are told when they are over."""
    graph = made()
    graph.apply(Changes(gone=("redis-1",)), NOW)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW + 10)
    assert bytes_between(graph, NOW + 10) == {("cart-1", "redis-1"): 1000}
    graph.tidy(NOW + LINGER_S)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW + LINGER_S)
    assert graph.waiting_bytes == 1000


def test_an_address_given_anew_is_the_new_pod_s():
    graph = made()
    graph.apply(Changes(rows=(pod("new", node="b", ip="10.0.1.1"),), gone=("redis-1",)), NOW)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    assert bytes_between(graph) == {("cart-1", "new"): 1000}
    graph.tidy(NOW + LINGER_S)
    graph.add("a", [flow("cart-1", "10.0.1.1:6379")], NOW)
    assert bytes_between(graph) == {("cart-1", "new"): 2000}


@pytest.mark.parametrize("half_lives", [1, 2, 3.5])
def test_traffic_fades_by_half_with_every_half_life(half_lives):
    graph = made()
    graph.add("a", [flow("cart-1", "web-1", 1 << 20)], NOW)
    key = Key("cart-1", "web-1", "tcp")
    before = graph.pods(NOW).edges[key]
    after = graph.pods(NOW + half_lives * HALF_LIFE_S).edges[key]
    assert after.bytes == pytest.approx(before.bytes / 2**half_lives)
    assert after.messages == pytest.approx(before.messages / 2**half_lives)


def test_steady_traffic_is_shown_at_its_true_rate():
    graph = made()
    for at in range(600):
        graph.add("a", [flow("cart-1", "web-1", 10_000, 100)], NOW + 10 * at)
    rate = graph.pods(NOW + 5990).edges[Key("cart-1", "web-1", "tcp")]
    assert rate.bytes == pytest.approx(1000, rel=0.02)
    assert rate.messages == pytest.approx(10, rel=0.02)


def test_years_change_nothing():
    graph = made()
    for at in range(4):
        now = NOW + at * 3e7
        graph.add("a", [flow("cart-1", "web-1")], now)
        graph.tidy(now)
        assert bytes_between(graph, now) == {("cart-1", "web-1"): 1000}


def test_what_has_faded_is_forgotten():
    graph = made()
    graph.add("a", [flow("cart-1", "web-1")], NOW)
    graph.tidy(NOW + 9 * HALF_LIFE_S)
    assert graph.pods(NOW + 9 * HALF_LIFE_S).edges == {}


def test_the_lightest_edges_go_first_and_are_counted():
    graph = made(most_edges=10)
    graph.add("a", [flow("cart-1", f"peer-{at}", 1000 * at, at) for at in range(1, 12)], NOW)
    kept = sorted(int(key.target.rpartition("-")[2]) for key in graph.pods(NOW).edges)
    assert kept == list(range(3, 12))
    assert graph.dropped == 2


@pytest.mark.parametrize("settings", [{"half_life": 0}, {"half_life": float("nan")}, {"most_edges": 0}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(BadTraffic):
        ClusterGraph(**settings)


def test_what_the_api_server_tells_of_a_pod_beats_what_kube_scheduler_told():
    graph = made()
    graph.asked(replace(CART, ip="", node=""), NOW)
    assert graph.pod_index.node("cart-1") == "a"
