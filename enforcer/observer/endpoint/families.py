"""Metric families that are made anew at each scrape, from what is known then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


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


class Families(Collector):
    """Hands a function that makes families to a registry."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()
