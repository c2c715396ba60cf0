"""What the enforcer's port serves: /metrics for Prometheus, /healthz and /readyz for the kubelet, the node's traffic as
JSON for `numakin-enforcer top` and `record`, which ask from the same machine or pod.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import make_wsgi_app

from enforcer.observer.endpoint import node_metrics
from enforcer.observer.endpoint.families import Families
from enforcer.observer.endpoint.health import Health
from enforcer.observer.endpoint.port import App
from enforcer.observer.traffic_loop import TrafficView
from numakin.placement.traffic.relays import relays

MOST_EDGES = 200
"""Edges in one answer, the heaviest first; their number is given besides."""


def application(health: Health) -> App:
    """Once for each `Counters`: the gauges go into its registry."""
    health.counters.registry.register(Families(partial(node_metrics.families, health)))
    return _app(health)


def _app(health: Health) -> App:
    metrics = make_wsgi_app(health.counters.registry)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            page: Iterable[bytes] = metrics(environ, start)
            return page
        here = _is_loopback(environ["REMOTE_ADDR"])
        if path in PAGES and here and health.watching is not None:
            return _json(PAGES[path](health.watching.view, environ.get("QUERY_STRING", "")), start)
        answers = {"/healthz": (True, "ok"), "/readyz": health.ready} | dict.fromkeys(PAGES, NOBODY_WATCHES)
        if path not in answers:
            good, text, status = False, "not found: try /metrics, /healthz, /readyz, /api/v1/traffic", "404 Not Found"
        elif path in PAGES and not here:
            good, text, status = False, NOT_FROM_ELSEWHERE, "403 Forbidden"
        else:
            good, text = answers[path]
            status = "200 OK" if good else "503 Service Unavailable"
        body = (text + "\n").encode()
        start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    return app


def _is_loopback(text: str) -> bool:
    """Of IPv4 too where it came to a socket of IPv6."""
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _since(query: str) -> int:
    text = parse_qs(query).get("since", ["0"])[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


PAGES: dict[str, Callable[[TrafficView, str], dict[str, Any]]] = {
    "/api/v1/traffic": lambda view, _query: traffic(view),
    "/api/v1/windows": lambda view, query: windows(view, _since(query)),
}


NOT_FROM_ELSEWHERE = "who talks to whom is told by 127.0.0.1 alone: ask in the enforcer's own pod, or on its machine"
"""Any pod may reach the port, and what it shows of the tenants' pods the extender shows to those alone who may see it.
"""

NOBODY_WATCHES = False, "traffic is not watched: not yet, or never with --observe off"


def _json(page: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = json.dumps(page).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def traffic(view: TrafficView) -> dict[str, Any]:
    """Edges with their rates and weights (nanoseconds a second that a crossing would cost), heaviest first."""
    costs = view.graph.costs
    weighted = [(costs.weight(key.kind, rate), key, rate) for key, rate in view.graph.edges.items()]
    weighted.sort(key=lambda row: (-row[0], row[1]))
    return {
        "collector": view.collector,
        "programs": view.programs,
        "refusals": [{"way": way, "reason": reason} for way, reason in view.refusals],
        "edges": [
            {
                "source": view.names.get(key.source, key.source),
                "target": view.names.get(key.target, key.target),
                "kind": key.kind,
                "bytes_per_s": round(rate.bytes, 1),
                "messages_per_s": round(rate.messages, 2),
                "weight": round(weight, 1),
            }
            for weight, key, rate in weighted[:MOST_EDGES]
        ],
        "edges_in_all": len(weighted),
        "relays": sorted(view.names.get(relay, relay) for relay in relays(view.graph)),
        "dropped_edges": view.graph.dropped,
        "unattributed_bytes": view.unattributed_bytes,
        "lost_bytes": view.lost_bytes,
        "unseen": [{"reason": reason, "containers": containers} for reason, containers in view.unseen],
    }


def windows(view: TrafficView, since: int) -> dict[str, Any]:
    """The windows with a number over `since` that are still kept, as `record` writes them. Numbers are a session's."""
    newer = (window for window in view.windows if window.number > since)
    return {
        "session": view.session,
        "windows": [{"number": window.number, "line": window.line} for window in newer],
    }
