"""When the probes are on: a share of each period. Pure.

A tenth of the time is enough to know who talks to whom, and costs a tenth. The time within the period shifts from one
to the next by the golden ratio, so that traffic with a rhythm of its own is neither always seen nor always missed.
"""

from dataclasses import dataclass

GOLDEN = 0.6180339887498949
"""Its multiples, without their whole parts, fill the unit interval more evenly than any other's."""

DEFAULT_SHARE = 0.1
DEFAULT_PERIOD_S = 10.0


@dataclass(frozen=True, slots=True)
class Phase:
    """Whether the probes are on, and the second at which that changes."""

    on: bool
    until: float


@dataclass(frozen=True, slots=True)
class DutyCycle:
    """`share` of each `period_s` seconds. ValueError unless 0 < share <= 1 and the period is positive."""

    share: float = DEFAULT_SHARE
    period_s: float = DEFAULT_PERIOD_S

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"duty cycle: share {self.share} is not in (0, 1]")
        if not self.period_s > 0:
            raise ValueError(f"duty cycle: period {self.period_s} is not positive")

    @classmethod
    def within(cls, window_s: float, share: float = DEFAULT_SHARE) -> "DutyCycle":
        """One of whose periods ends in each window, so that none goes by unseen."""
        return cls(share, min(DEFAULT_PERIOD_S, window_s))

    def phase(self, elapsed: float) -> Phase:
        """The phase at `elapsed` seconds after the start."""
        if self.share == 1:
            return Phase(on=True, until=elapsed + self.period_s)
        cycle = int(elapsed // self.period_s)
        while True:
            begin, end = self._window(cycle)
            if elapsed < end:
                return Phase(on=elapsed >= begin, until=end if elapsed >= begin else begin)
            cycle += 1

    def on_until(self, elapsed: float) -> float:
        """For how many of the first `elapsed` seconds the probes are to be on."""
        cycle = int(elapsed // self.period_s)
        begin, _ = self._window(cycle)
        whole = self.share * self.period_s
        return cycle * whole + min(whole, max(0.0, elapsed - begin))

    def _window(self, cycle: int) -> tuple[float, float]:
        slack = (1 - self.share) * self.period_s
        begin = cycle * self.period_s + cycle * GOLDEN % 1 * slack
        return begin, begin + self.share * self.period_s
