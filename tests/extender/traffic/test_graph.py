"""What many enforcers tell of traffic, joined: each pair once, addresses found, faded, bounded, remembered."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.state import pod_index
from extender.state.pod_index import LINGER_S, Address, address
from extender.state.pods import Changes, PodRow
from extender.traffic import graph as cluster_graph
from extender.traffic.graph import WAIT_S, ClusterGraph
from placement.model.errors import BadTraffic
from placement.traffic.graph import HALF_LIFE_S, Key, Rate
from tests.extender.traffic.talking import flow, pod

NOW = 1000.0


CART = pod("cart-1", "cart", node="a", ip="10.0.0.1")
REDIS = pod("redis-1", "redis", node="b", ip="10.0.1.1")
WEB = pod("web-1", "web", node="a", ip="fd00::1")
HOST = pod("host-1", "host", node="b", ip="192.168.0.2", host_network=True)
STRANGER = pod("stranger", node="b", ip="10.0.1.9", group="")
EVERYBODY = (CART, REDIS, WEB, HOST, STRANGER)


def made(*rows: PodRow, **settings) -> ClusterGraph:
    graph = ClusterGraph(**settings)
    graph.apply(Changes(rows=rows or EVERYBODY, whole=True), NOW)
    return graph


def bytes_between(graph: ClusterGraph, now: float = NOW) -> dict[tuple[str, str], int]:
    """Bytes told, by the two ends; the rates are made counts again."""
    gain = 0.6931471805599453 / HALF_LIFE_S
    return {key[:2]: round(rate.bytes / gain) for key, rate in graph.pods(now).edges.items()}


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("10.0.0.7", Address("10.0.0.7")),
        ("10.0.0.7:80", Address("10.0.0.7", 80)),
        ("fd00::1", Address("fd00::1")),
        ("[fd00::1]:80", Address("fd00::1", 80)),
        ("[FD00:0::1]:80", Address("fd00::1", 80)),
        ("[::ffff:10.0.0.7]:80", Address("10.0.0.7", 80)),
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


PODS = [pod(f"p{at}", f"w{at % 3}", node=f"n{at % 2}", ip=f"10.0.{at % 2}.{at}") for at in range(6)]


@st.composite
def conversations(draw):
    """What both ends' nodes tell of some conversations, each with its time."""
    received = []
    for _ in range(draw(st.integers(1, 12))):
        client, server = draw(st.permutations(PODS))[:2]
        size, port = draw(st.integers(1, 1 << 30)), draw(st.sampled_from([80, 443]))
        at = NOW + draw(st.integers(0, 20))
        if client.node == server.node:
            received.append((client.node, at, flow(client.uid, server.uid, size, 1)))
            continue
        received.append((server.node, at, flow(f"{client.ip}:{port}", server.uid, size, 1, server=True)))
        if draw(st.booleans()):
            received.append((client.node, at, flow(client.uid, f"{server.ip}:{port}", size, 1)))
    return received


def joined(steps) -> ClusterGraph:
    graph = ClusterGraph()
    for step in steps:
        if isinstance(step, PodRow):
            graph.apply(Changes(rows=(step,)), NOW)
        else:
            node, at, first = step
            graph.add(node, [first], at)
    return graph


@given(conversations(), st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_and_the_api_server_tell_does_not_matter(received, random):
    steps = [*PODS, *received]
    expected = joined(steps).pods(NOW + 20).edges
    random.shuffle(steps)
    assert joined(steps).pods(NOW + 20).edges == {
        key: Rate(pytest.approx(rate.bytes), pytest.approx(rate.messages)) for key, rate in expected.items()
    }


@given(conversations())
def test_no_conversation_is_counted_twice(received):
    """Both nodes tell, and the sum is what the conversations were."""
    graph = joined([*PODS, *((node, NOW, entry) for node, _, entry in received)])
    truth = sum(
        entry.bytes
        for _, _, entry in received
        if entry.by_server or (not address(entry.source) and not address(entry.target))
    )
    assert sum(bytes_between(graph).values()) == pytest.approx(truth, abs=len(received))


@given(conversations(), st.sets(st.sampled_from(range(6))))
def test_every_byte_told_has_one_fate(received, known):
    graph = joined([*(PODS[at] for at in known), *received])
    assert sum(asdict(graph.fates).values()) + graph.waiting_bytes == sum(entry.bytes for _, _, entry in received)
    graph.tidy(NOW + 60)
    assert sum(asdict(graph.fates).values()) == sum(entry.bytes for _, _, entry in received)


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
    graph.remembered.restored({key: Rate(1000.0, 0.0)}, NOW)
    now, seen = NOW, []
    for _ in range(300):
        seen.append(between_workloads(graph, now)["cart", "web"])
        now += HALF_LIFE_S / 60
        graph.add("a", [flow("cart-1", "web-1", round(steady), 0)], now)
    assert seen == [pytest.approx(1000, rel=0.02)] * len(seen)


def test_remembered_edges_are_bounded_too():
    graph = ClusterGraph()
    graph.remembered._most = 3
    edges = {Key(f"shop/Job/j{at}", "shop/Deployment/web", "tcp"): Rate(at, 0.0) for at in range(1, 6)}
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


def test_what_the_api_server_tells_of_a_pod_beats_what_kube_scheduler_told():
    graph = made()
    graph.asked(replace(CART, ip="", node=""), NOW)
    assert graph.pod_index.node("cart-1") == "a"
