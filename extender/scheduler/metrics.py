"""Counters and gauges of the extender; every name starts with numakin_."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from extender.views.readout import Gauge as Row
from numakin.process.version import VERSION

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Seconds. kube-scheduler's cycle is serial and takes 4 to 8 ms, so what matters happens below 20 ms."""


class Metrics:
    """One registry for one program; gauges are read from the cluster when Prometheus asks."""

    def __init__(self) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        Gauge(
            "numakin_extender_build_info",
            "1, with the program's version and Python's.",
            ["version", "python"],
            registry=self.registry,
        ).labels(VERSION, platform.python_version()).set(1)
        self.requests = Counter(
            "numakin_extender_requests", "Requests of kube-scheduler.", ["verb", "code"], registry=self.registry
        )
        self.seconds = Histogram(
            "numakin_extender_request_seconds",
            "How long kube-scheduler waited for an answer.",
            ["verb"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.predictions = Counter(
            "numakin_extender_predictions",
            "What became of nominated places, as enforcers reported it to this replica; each replica receives all.",
            ["outcome"],
            registry=self.registry,
        )
        self.certificates_not_taken = Counter(
            "numakin_extender_certificates_not_taken",
            "Renewed certificates that can't be used: the last good ones serve on.",
            ["port"],
            registry=self.registry,
        )
        self.over_limit = Counter(
            "numakin_extender_over_limit",
            "Connections and requests refused, by the limit that they were over (docs/limits.md).",
            ["limit"],
            registry=self.registry,
        )
        self.reports = Counter(
            "numakin_extender_reports", "Messages of enforcers by what became of them.", ["result"],
            registry=self.registry,
        )  # fmt: skip
        self.regroup_steps = Counter(
            "numakin_extender_regroup_steps",
            "Evictions for groups, by what came of them; of the replica that leads.",
            ["outcome"],
            registry=self.registry,
        )
        self.kin_hidden = Counter(
            "numakin_extender_kin_hidden",
            "Pods whose kin's nodes were not among those to score: full, or left out by percentageOfNodesToScore.",
            registry=self.registry,
        )
        self.refusals = Counter(
            "numakin_extender_refusals", "Nodes refused to pods, by reason.", ["reason"], registry=self.registry
        )

    def gauges(self, read: Callable[[], Iterable[Row]]) -> None:
        self.registry.register(_Gauges(read))


class _Gauges:
    def __init__(self, read: Callable[[], Iterable[Row]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        for name, text, label, values in self._read():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, text, labels=[label] if label else [])
            for key, value in values.items():
                family.add_metric([key] if label else [], value)
            yield family
