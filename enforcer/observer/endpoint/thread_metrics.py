"""How the observer's threads stand, for Prometheus: a series for each, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from process.threads import Standing


class ThreadFigures(Collector):
    def __init__(self, read: Callable[[], Iterable[Standing]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        since = GaugeMetricFamily(
            "numakin_enforcer_thread_seconds_since_success",
            "Seconds since the thread's last good round.",
            labels=["thread"],
        )
        stale = GaugeMetricFamily(
            "numakin_enforcer_thread_stale", "1 for a thread without a good round for too long.", labels=["thread"]
        )
        failures = CounterMetricFamily(
            "numakin_enforcer_thread_failures", "Rounds of the thread that failed.", labels=["thread"]
        )
        for standing in self._read():
            since.add_metric([standing.thread], standing.since_success_s)
            stale.add_metric([standing.thread], float(standing.stale))
            failures.add_metric([standing.thread], standing.failures)
        yield from (since, stale, failures)
