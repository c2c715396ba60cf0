"""Collectors switched on and off by the duty cycle, and read as differences scaled to the whole time.

Sans clock: the caller says what time it is, in seconds of any monotonic clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from enforcer.observe.bpf.counters import CounterKey, CounterSnapshot, Delta, Missed, Volume, difference
from enforcer.observe.collectors.collector import Collector
from enforcer.observe.collectors.duty import DutyCycle


@dataclass(frozen=True, slots=True)
class Reading:
    """What flowed in `seconds`. `scaled`: an estimate, from the `seconds_on` that the probes were on."""

    delta: Delta = field(default_factory=Delta)
    seconds: float = 0.0
    seconds_on: float = 0.0

    @property
    def scaled(self) -> bool:
        return self.seconds_on < self.seconds


class CollectorPair:
    """All collectors of a node. Errors of `attach` and `drain` are passed on; the watch can then only be closed."""

    def __init__(self, collectors: Sequence[Collector], duty: DutyCycle, now: float) -> None:
        self._collectors = tuple(collectors)
        self._duty = duty
        self._start = self._read_at = now
        self._on_since: float | None = None
        self._seconds_on = 0.0
        self._before = [CounterSnapshot() for _ in self._collectors]

    def step(self, now: float) -> float:
        """Switch what is due; returns when to come again. To be called no later than that, or the share is missed."""
        phase = self._duty.phase(now - self._start)
        if phase.on and self._on_since is None:
            for collector in self._collectors:
                collector.attach()
            self._on_since = now
        elif not phase.on and self._on_since is not None:
            for collector in self._collectors:
                collector.detach()
            self._seconds_on += now - self._on_since
            self._on_since = None
        return self._start + phase.until

    def read(self, now: float) -> Reading:
        """What flowed since the last reading. One reading to a whole number of periods gives even estimates."""
        if self._on_since is not None:
            self._seconds_on += now - self._on_since
            self._on_since = now
        seconds, on = now - self._read_at, self._seconds_on
        self._read_at, self._seconds_on = now, 0.0
        counters: dict[CounterKey, Volume] = {}
        missed = Missed()
        for index, collector in enumerate(self._collectors):
            after = collector.drain()
            delta = difference(self._before[index], after)
            self._before[index] = after
            counters |= delta.counters
            missed += delta.missed
        counted = Delta(counters, missed)
        return Reading(counted.scaled(seconds / on) if 0 < on < seconds else counted, seconds, on)

    def close(self) -> None:
        for collector in self._collectors:
            collector.close()
