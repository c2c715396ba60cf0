"""What the pods of a workload use of the CPU: the 95th percentile of what they were seen to use, each in each window.

A `UseTally` belongs to one owner, who feeds it with what pods used; nothing here reads a clock. It keeps a histogram
for each workload, in which old samples fade by half with every half-life. A percentile and no mean, since a pod must
have room when it works; not the largest, since each start and each stray minute would count for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp, exp2, floor, log

PERCENTILE = 0.95

HALF_LIFE_S = 6 * 3600.0
"""Seconds in which samples count for half: so that yesterday's peak is still known today, and last week's is not."""

STEP = 1.1
"""From one bucket of a histogram to the next: a percentile is right to 5 %."""

ENOUGH = 60
"""Windows in which a workload was seen, before anything is said of it: ten minutes, of which a start of 30 s is no more
than the twentieth part that is left out, however many replicas start together.
"""

MOST_WORKLOADS = 2_048
"""Of one node; those that were not seen for longest go first."""


@dataclass(slots=True)
class _Histogram:
    """Weights of samples by bucket, as of `at`. windows: that the samples are of."""

    at: float
    buckets: dict[int, float] = field(default_factory=dict)
    windows: int = 0

    def add(self, milli: float, now: float) -> None:
        if now > self.at or not self.buckets:
            self.windows += 1
        faded = exp2((self.at - now) / HALF_LIFE_S)
        self.buckets = {bucket: weight * faded for bucket, weight in self.buckets.items()}
        self.at = now
        bucket = floor(log(max(1.0, milli)) / log(STEP))
        self.buckets[bucket] = self.buckets.get(bucket, 0.0) + 1.0

    def percentile(self) -> int:
        """The middle of the bucket that it is in; millicores."""
        above = (1.0 - PERCENTILE) * sum(self.buckets.values())
        for bucket in sorted(self.buckets, reverse=True):
            above -= self.buckets[bucket]
            if above < 0:
                return round(exp((bucket + 0.5) * log(STEP)))
        return 0


class UseTally:
    """By workload, NAMESPACE/KIND/NAME."""

    def __init__(self) -> None:
        self._histograms: dict[str, _Histogram] = {}

    def add(self, workload: str, milli: float, now: float) -> None:
        """What one of its pods used in a window, in millicores. now: that window's end, in seconds of any clock that
        never runs backwards.
        """
        histogram = self._histograms.pop(workload, None) or _Histogram(now)
        histogram.add(milli, now)
        self._histograms[workload] = histogram
        if len(self._histograms) > MOST_WORKLOADS:
            del self._histograms[next(iter(self._histograms))]

    def known(self) -> dict[str, int]:
        """Millicores, of the workloads of which enough was seen."""
        return dict(self._of_each())

    def _of_each(self) -> Iterator[tuple[str, int]]:
        for workload, histogram in self._histograms.items():
            if histogram.windows >= ENOUGH:
                yield workload, histogram.percentile()
