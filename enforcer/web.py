"""The enforcer's port: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app

from enforcer.report.mirror import Mirror
from proto import report_pb2 as pb


class Health(Protocol):
    """What the port asks of the observer."""

    mirror: Mirror
    counters: Counters

    @property
    def ready(self) -> tuple[bool, str]: ...
    @property
    def streaming(self) -> bool: ...


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
        "numakin_enforcer_streaming": ("1 while the extender hears us.", lambda: float(health.streaming)),
        "numakin_enforcer_members": (
            "Opted-in containers that are pinned.",
            lambda: float(sum(1 for one in health.mirror.occupancy.holdings.values() if one.cpus)),
        ),
        "numakin_enforcer_generation": ("Changes of the occupancy.", lambda: float(health.mirror.occupancy.generation)),
    }
    for name, (text, read) in readings.items():
        Gauge(name, text, registry=registry).set_function(read)


def _app(health: Health) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    metrics = make_wsgi_app(health.counters.registry)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            page: Iterable[bytes] = metrics(environ, start)
            return page
        answers: dict[str, tuple[bool, str]] = {"/healthz": (True, "ok"), "/readyz": health.ready}
        if path not in answers:
            good, text, status = False, "not found: try /metrics, /healthz, /readyz", "404 Not Found"
        else:
            good, text = answers[path]
            status = "200 OK" if good else "503 Service Unavailable"
        body = (text + "\n").encode()
        start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    return app


class _Server(ThreadingMixIn, WSGIServer):
    """A slow reader of metrics must not keep the kubelet's probe waiting."""

    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    """Without a line on stderr for each probe."""

    def log_message(self, *_: object) -> None: ...
