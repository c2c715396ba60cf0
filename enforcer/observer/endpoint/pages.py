"""What the enforcer's port serves: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import make_wsgi_app

from enforcer.observer.endpoint import node_metrics, traffic_page
from enforcer.observer.endpoint.families import Families
from enforcer.observer.endpoint.health import Health
from enforcer.observer.endpoint.port import App
from enforcer.observer.traffic_loop import TrafficView


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
        if path in PAGES and health.watching is not None:
            return _json(PAGES[path](health.watching.view, environ.get("QUERY_STRING", "")), start)
        answers = {"/healthz": (True, "ok"), "/readyz": health.ready} | dict.fromkeys(PAGES, NOBODY_WATCHES)
        if path not in answers:
            good, text, status = False, "not found: try /metrics, /healthz, /readyz, /api/v1/traffic", "404 Not Found"
        else:
            good, text = answers[path]
            status = "200 OK" if good else "503 Service Unavailable"
        body = (text + "\n").encode()
        start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    return app


def _since(query: str) -> int:
    text = parse_qs(query).get("since", ["0"])[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


PAGES: dict[str, Callable[[TrafficView, str], dict[str, Any]]] = {
    "/api/v1/traffic": lambda view, _query: traffic_page.traffic(view),
    "/api/v1/windows": lambda view, query: traffic_page.windows(view, _since(query)),
}


NOBODY_WATCHES = False, "traffic is not watched: not yet, or never with --observe off"


def _json(page: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = json.dumps(page).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
