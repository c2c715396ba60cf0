"""A graph of a shop's traffic on two nodes."""

from __future__ import annotations

from extender.state.pods import Changes, PodRow
from extender.traffic.graph import ClusterGraph
from numakin.placement.traffic.graph import HALF_LIFE_S
from tests.extender.traffic.talking import pod

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
