"""What a /metrics page exposes: its families, and where they break Prometheus' rules for names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


def families(page: str) -> dict[str, Metric]:
    """By the name that people query: a counter's with `_total`."""
    result = text_string_to_metric_families(page)
    return {f"{entry.name}_total" if entry.type == "counter" else entry.name: entry for entry in result}


def value(page: str, name: str, **labels: str) -> float:
    """0 where there is no such series yet."""
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    return sum(entry.value for entry in samples if entry.name == name and labels.items() <= entry.labels.items())


def offences(page: str) -> Iterator[str]:
    """As `promtool check metrics` has them, as far as they concern us."""
    for name, family in families(page).items():
        if not re.fullmatch(r"(numakin|process|python)_[a-z0-9_]+", name):
            yield f"{name}: not a name of ours"
        if family.type not in ("counter", "gauge", "histogram"):
            yield f"{name}: of type {family.type}"
        if family.type != "counter" and name.endswith("_total"):
            yield f"{name}: not a counter, and says so"
        if not family.documentation.endswith("."):
            yield f"{name}: no sentence of help"
        if not name.endswith("_build_info") and re.search(
            r"_(ms|milliseconds|minutes|kib|mib|percent|count|sum|bucket|info)$", name
        ):
            yield f"{name}: a unit that is no base unit, or a reserved ending"
