"""The state of the extender's threads, for Prometheus: by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from extender.views.readout import Gauge
from numakin.process.threads import Standing, rows


def thread_gauges(standings: Iterable[Standing]) -> Iterator[Gauge]:
    for name, text, by_thread in rows(standings):
        yield f"numakin_extender_{name}", text, "thread", by_thread
