"""Metric families that are made anew at each scrape, from what is known then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from numakin.process.durations import BOUNDS_S
from numakin.wire import local_pb2 as local


def family(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    """A counter where the name ends with _total, else a gauge. values: by the label's value, or by a tuple of all
    labels' values.
    """
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    made = kind(f"numakin_{name}", text, labels=labels)
    for key, value in values.items():
        made.add_metric([str(part) for part in (key if isinstance(key, tuple) else (key,))], value)
    return made


def single(name: str, text: str, value: float) -> Metric:
    """A family of one series, without labels."""
    return family(name, text, (), {(): value})


def histogram(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, local.Durations]) -> Metric:
    """A histogram in seconds, with the bounds of `numakin.process.durations`. values: by the labels' values."""
    made = HistogramMetricFamily(f"numakin_{name}", text, labels=labels)
    bounds = [*map(floatToGoString, BOUNDS_S), "+Inf"]
    for key, durations in values.items():
        counts = durations.counts or [0] * len(bounds)
        buckets = list(zip(bounds, accumulate(counts), strict=True))
        made.add_metric(list(key) if isinstance(key, tuple) else [key], buckets, durations.seconds)
    return made


class Families(Collector):
    """Hands a function that makes families to a registry."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()
