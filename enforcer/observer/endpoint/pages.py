"""What the enforcer's port serves: /metrics for Prometheus, /healthz and /readyz for the kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import nan
from typing import Any, Protocol
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from enforcer.observer.census import Census
from enforcer.observer.endpoint import traffic_page
from enforcer.observer.endpoint.attachment import Attachment
from enforcer.observer.endpoint.hook_metrics import HookCounts
from enforcer.observer.endpoint.live_metrics import LiveFigures
from enforcer.observer.endpoint.port import App
from enforcer.observer.endpoint.thread_metrics import ThreadFigures
from enforcer.observer.endpoint.unseen_metrics import UnseenContainers
from enforcer.observer.traffic_loop import TrafficLoop, TrafficView
from enforcer.report.mirror import Mirror
from placement.state.occupancy import Allocation, Occupancy
from process.threads import Threads
from proto import report_pb2 as pb
from proto.certificates import Renewed

COLLECTORS = ("cgroup_skb", "socket_tracepoints", "fexit", "kprobes", "inet_diag", "none", "replay", "off")

disable_created_metrics()  # a second series for each counter, which nobody asks for


class Health(Protocol):
    """What the port asks of the observer."""

    mirror: Mirror
    counters: Counters
    watching: TrafficLoop | None
    threads: Threads
    attachment: Attachment
    census: Census | None

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
        self.hook = HookCounts()
        self.registry.register(self.hook)
        self.hook_starts = Counter(
            "numakin_enforcer_hook_starts_total",
            "Starts of the hook process that the observer has seen.",
            registry=self.registry,
        )
        self.certificates_not_taken = Counter(
            "numakin_enforcer_certificates_not_taken_total",
            "Renewed certificates that can't be used: the last good ones serve on.",
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
        for decision in report.decisions:
            self._decisions.labels(event=decision.event).inc()


def application(health: Health) -> App:
    """Once for each `Counters`: the gauges go into its registry."""
    _gauges(health)
    return _app(health)


def _gauges(health: Health) -> None:
    registry = health.counters.registry
    readings: dict[str, tuple[str, Callable[[], float]]] = {
        "numakin_enforcer_registered": ("1 while the runtime has us as a plugin.", lambda: float(health.ready[0])),
        "numakin_enforcer_runtime_confirmed_seconds_ago": (
            "Since the runtime last showed that it has us: by an event or an answer; NaN where that is not known.",
            lambda: nan if (ago := health.attachment.confirmed_s_ago) is None else ago,
        ),
        "numakin_enforcer_untold_containers": (
            "Containers that run though the runtime never told of them: it has forgotten us, or they are not its own.",
            lambda: float(health.census.untold if health.census is not None else 0),
        ),
        "numakin_enforcer_streaming": ("Replicas of the extender that hear us.", lambda: float(health.streaming)),
        "numakin_enforcer_members": (
            "Containers of opted-in pods that are pinned.",
            lambda: float(sum(1 for _ in _pinned(health.mirror.occupancy))),
        ),
        "numakin_enforcer_foreign_containers": (
            "Containers whose cpuset somebody else sets: numakin yields for them.",
            lambda: float(
                sum(allocation.externally_managed for allocation in health.mirror.occupancy.allocations.values())
            ),
        ),
        "numakin_enforcer_pressure_known": (
            "1 where the kernel tells how long memory was waited for.",
            lambda: float(bool(health.mirror.occupancy.live.stalled)),
        ),
    }
    in_force = Gauge(
        "numakin_enforcer_collector", "1 for the way in which traffic is seen.", ["name"], registry=registry
    )
    for name in COLLECTORS:
        in_force.labels(name=name).set_function(partial(_is_in_force, health, name))
    registry.register(Refusals(health))
    registry.register(SeenSoFar(health))
    registry.register(UnseenContainers(lambda: health.watching.view.unseen if health.watching is not None else ()))
    registry.register(LiveFigures(lambda: health.mirror.occupancy.live))
    registry.register(ThreadFigures(health.threads.standings))
    for name, (text, read) in readings.items():
        Gauge(name, text, registry=registry).set_function(read)


def _pinned(occupancy: Occupancy) -> Iterator[Allocation]:
    """Those of members."""
    for allocation in occupancy.allocations.values():
        reservation = occupancy.reservations.get(allocation.reservation)
        if allocation.cpus and not allocation.externally_managed and reservation is not None and reservation.opted_in:
            yield allocation


class SeenSoFar(Collector):
    """What only grows, for as long as the hook's and the observer's processes live."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterable[CounterMetricFamily]:
        watching, generation = self._health.watching, self._health.mirror.occupancy.generation
        view = watching.view if watching is not None else TrafficView()
        for name, text, count in (
            (
                "traffic_unattributed_bytes",
                "Payload bytes that belong to no container known here.",
                view.unattributed_bytes,
            ),
            ("traffic_lost_bytes", "Payload bytes that the kernel's map had no room for.", view.lost_bytes),
            ("occupancy_changes", "Changes of the node's occupancy: its generation.", generation),
        ):
            yield CounterMetricFamily(f"numakin_enforcer_{name}", text, value=count)


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


def _app(health: Health) -> App:
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


PAGES: dict[str, Callable[[TrafficView, str], dict[str, Any]]] = {
    "/api/v1/traffic": lambda view, _query: traffic_page.traffic(view),
    "/api/v1/windows": lambda view, query: traffic_page.windows(view, _since(query)),
}


def _json(page: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = json.dumps(page).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
