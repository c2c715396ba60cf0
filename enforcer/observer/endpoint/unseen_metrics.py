"""Containers whose traffic can't be told from others', for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class UnseenContainers(Collector):
    """A series for each reason; none where all can be told apart."""

    def __init__(self, read: Callable[[], Iterable[tuple[str, int]]]) -> None:
        self._read = read

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "numakin_enforcer_traffic_unseen_containers",
            "Containers whose traffic can't be told from others'.",
            labels=["reason"],
        )
        for reason, containers in self._read():
            family.add_metric([reason], containers)
        yield family
