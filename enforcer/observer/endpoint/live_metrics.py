"""The live figures that the node decides by, as the hook told them, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from placement.model.live_usage import Live


class LiveFigures(Collector):
    """A series for each NUMA node; none for what is not known."""

    def __init__(self, read: Callable[[], Live]) -> None:
        self._read = read

    def collect(self) -> Iterable[GaugeMetricFamily]:
        live = self._read()
        used = {one: milli / 1000 for one, milli in live.used_cpu.items()}
        yield _family("numakin_enforcer_free_memory_bytes", "Memory that can still be had.", live.free_memory)
        yield _family("numakin_enforcer_used_cpus", "CPUs in use, a minute's mean.", used)
        yield _family("numakin_enforcer_memory_stalled", "Share of time that memory was waited for.", live.stalled)
        pages = GaugeMetricFamily(
            "numakin_enforcer_free_hugepages_bytes", "Hugepages that nobody uses.", labels=["numa_node", "size"]
        )
        for (one, size), free in live.free_hugepages.items():
            pages.add_metric([str(one), str(size)], free)
        yield pages


def _family(name: str, text: str, figures: Mapping[int, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, f"{text} Told when it changed notably.", labels=["numa_node"])
    for one, figure in figures.items():
        family.add_metric([str(one)], figure)
    return family
