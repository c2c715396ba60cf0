"""The enforcer's port: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from socketserver import ThreadingMixIn
from typing import Any, Protocol
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from enforcer import traffic_page
from enforcer.live_metrics import LiveFigures
from enforcer.report.mirror import Mirror
from enforcer.watching import View, Watching
from proto import report_pb2 as pb
from proto.certificates import Renewed

COLLECTORS = ("cgroup_skb", "socket_tracepoints", "fexit", "kprobes", "inet_diag", "none", "replay", "off")

disable_created_metrics()  # a second series for each counter, which nobody asks for


class Health(Protocol):
    """What the port asks of the observer."""

    mirror: Mirror
    counters: Counters
    watching: Watching | None

    @property
    def ready(self) -> tuple[bool, str]: ...
    @property
    def streaming(self) -> int: ...


class Counters:
    """What is counted of decisions, as the hook reports them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._decisions = Counter(
            "numakin_enforcer_decisions_total", "Decisions, by what led to them.", ["event"], registry=self.registry
        )
        self._predictions = Counter(
            "numakin_predictions_total",
            "Promises of the scheduler, by what became of them.",
            ["outcome"],
            registry=self.registry,
        )

        self.podresources_failures = Counter(
            "numakin_enforcer_podresources_failures_total",
            "Questions that the kubelet's podresources API did not answer.",
            registry=self.registry,
        )

    def certificate(self, ours: Renewed) -> None:
        """What we show to the extender; its end is told from now on."""
        name = "numakin_enforcer_certificate_expiration_timestamp_seconds"
        text = "When the certificate in use ends, in seconds since 1970."
        Gauge(name, text, registry=self.registry).set_function(lambda: ours.expires)

    def took(self, report: pb.Report) -> None:
        for one in report.decisions:
            self._decisions.labels(event=one.event).inc()
            if one.outcome != pb.UNPROMISED:
                self._predictions.labels(outcome=pb.Outcome.Name(one.outcome).lower()).inc()


def server(listen: str, health: Health) -> WSGIServer:
    """Bound to HOST:PORT; OSError when that is taken."""
    host, _, port = listen.rpartition(":")
    _gauges(health)
    return make_server(host or "0.0.0.0", int(port), _app(health), _Server, _QuietHandler)


def _gauges(health: Health) -> None:
    registry = health.counters.registry
    readings: dict[str, tuple[str, Callable[[], float]]] = {
        "numakin_enforcer_registered": ("1 while the runtime has us as a plugin.", lambda: float(health.ready[0])),
        "numakin_enforcer_streaming": ("Replicas of the extender that hear us.", lambda: float(health.streaming)),
        "numakin_enforcer_members": (
            "Opted-in containers that are pinned.",
            lambda: float(sum(1 for one in health.mirror.occupancy.holdings.values() if one.cpus)),
        ),
        "numakin_enforcer_traffic_unattributed_bytes": (
            "Payload bytes that belong to no container known here.",
            lambda: float(health.watching.view.unattributed_bytes if health.watching is not None else 0),
        ),
        "numakin_enforcer_traffic_lost_bytes": (
            "Payload bytes that the kernel's map had no room for.",
            lambda: float(health.watching.view.lost_bytes if health.watching is not None else 0),
        ),
        "numakin_enforcer_generation": ("Changes of the occupancy.", lambda: float(health.mirror.occupancy.generation)),
    }
    in_force = Gauge(
        "numakin_enforcer_collector", "1 for the way in which traffic is seen.", ["name"], registry=registry
    )
    for name in COLLECTORS:
        in_force.labels(name=name).set_function(partial(_is_in_force, health, name))
    registry.register(Refusals(health))
    registry.register(LiveFigures(lambda: health.mirror.occupancy.live))
    for name, (text, read) in readings.items():
        Gauge(name, text, registry=registry).set_function(read)


class Refusals(Collector):
    """Why the better ways to see traffic are not in force here: a series for each, with the kernel's word."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "numakin_enforcer_collector_refused",
            "1 for each better way to see traffic that is refused here.",
            labels=["name", "reason"],
        )
        for way, reason in self._health.watching.view.refusals if self._health.watching is not None else ():
            family.add_metric([way, reason], 1.0)
        yield family


def _is_in_force(health: Health, name: str) -> float:
    return float(_collector(health) == name)


def _collector(health: Health) -> str:
    return health.watching.view.collector if health.watching is not None else "off"


def _app(health: Health) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    metrics = make_wsgi_app(health.counters.registry)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            page: Iterable[bytes] = metrics(environ, start)
            return page
        answers: dict[str, tuple[bool, str]] = {"/healthz": (True, "ok"), "/readyz": health.ready}
        if path in PAGES and health.watching is not None:
            return _json(PAGES[path](health.watching.view, environ.get("QUERY_STRING", "")), start)
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


PAGES: dict[str, Callable[[View, str], dict[str, Any]]] = {
    "/api/v1/traffic": lambda view, _query: traffic_page.traffic(view),
    "/api/v1/windows": lambda view, query: traffic_page.windows(view, _since(query)),
}


def _json(page: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = json.dumps(page).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


class _Server(ThreadingMixIn, WSGIServer):
    """A slow reader of metrics must not keep the kubelet's probe waiting."""

    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    """Without a line on stderr for each probe."""

    def log_message(self, *_: object) -> None: ...
