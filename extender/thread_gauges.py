"""How the extender's threads stand, for Prometheus: by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from extender.views.readout import Gauge
from process.threads import Standing


def thread_gauges(standings: Iterable[Standing]) -> Iterator[Gauge]:
    standings = tuple(standings)
    name = "numakin_extender_thread"
    since = {standing.thread: standing.since_success_s for standing in standings}
    yield f"{name}_seconds_since_success", "Seconds since the thread's last good round.", "thread", since
    stale = {standing.thread: float(standing.stale) for standing in standings}
    yield f"{name}_stale", "1 for a thread without a good round for too long.", "thread", stale
    failures = {standing.thread: float(standing.failures) for standing in standings}
    yield f"{name}_failures_total", "Rounds of the thread that failed.", "thread", failures
