"""Collectors switched on and off by the duty cycle, and read as differences scaled to the whole time.

Sans clock: the caller says what time it is, in seconds of any monotonic clock.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from enforcer.observe.bpf.counters import CounterKey, CounterSnapshot, Delta, Missed, Volume, difference
from enforcer.observe.collectors.collector import Collector
from enforcer.observe.collectors.duty import DutyCycle

PERIODS = 6
"""Of the duty cycle, over which it is taken how much of the time that the probes should be on they were."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What flowed in `seconds`. scale: what was counted in `seconds_on`, when the probes were on, is multiplied by so
    much.
    """

    delta: Delta = field(default_factory=Delta)
    seconds: float = 0.0
    seconds_on: float = 0.0
    scale: float = 1.0


class CollectorPair:
    """All collectors of a node. Errors of `attach` and `drain` are passed on; the watch can then only be closed."""

    def __init__(self, collectors: Sequence[Collector], duty: DutyCycle, now: float) -> None:
        self._collectors = tuple(collectors)
        self._duty = duty
        self._start = self._read_at = now
        self._on_since: float | None = None
        self._seconds_on = 0.0
        self._lately: deque[tuple[float, float]] = deque()
        """Of each reading the seconds that the probes should have been on, and were."""
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
        """What flowed since the last reading."""
        if self._on_since is not None:
            self._seconds_on += now - self._on_since
            self._on_since = now
        began, on = self._read_at, self._seconds_on
        self._read_at, self._seconds_on = now, 0.0
        counters: dict[CounterKey, Volume] = {}
        missed = Missed()
        for index, collector in enumerate(self._collectors):
            after = collector.drain()
            delta = difference(self._before[index], after)
            self._before[index] = after
            counters |= delta.counters
            missed += delta.missed
        counted, scale = Delta(counters, missed), self._scale(began, now, on)
        return Reading(counted.scaled(scale) if scale != 1.0 else counted, now - began, on, scale)

    def _scale(self, began: float, now: float, on: float) -> float:
        """What the duty cycle says, and not what was seen of this reading: as readings and periods do not begin
        together, one has no time on, or a piece of it, or twice as much, and would tell too little of what flows.
        """
        if self._duty.share == 1:
            return 1.0
        should = self._duty.on_until(now - self._start) - self._duty.on_until(began - self._start)
        self._lately.append((should, on))
        planned, was = (sum(seconds) for seconds in zip(*self._lately, strict=True))
        while planned - self._lately[0][0] >= PERIODS * self._duty.share * self._duty.period_s:
            gone = self._lately.popleft()
            planned, was = planned - gone[0], was - gone[1]
        return planned / was / self._duty.share if was > 0 else 1.0

    def close(self) -> None:
        for collector in self._collectors:
            collector.close()
