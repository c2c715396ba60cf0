"""What pairs of runs say of two ways to run a workload: a ratio, how sure it is, and whether anything may be concluded.

Each round runs every way once, so that whatever the machine did meanwhile is in both halves of a pair. Ratios are taken
as logarithms, pair by pair. Their median of pairwise means (Hodges-Lehmann) and the exact interval of Wilcoxon's signed
ranks need no normal distribution, and one run that another program disturbed moves them little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, exp, isfinite, log, log2
from statistics import median

FEWEST_PAIRS = 6
"""With fewer, no interval of signed ranks has 95 %: 2 of 2^5 signs are 6 %."""

LEVEL = 0.95
"""Of all intervals of a comparison together (Bonferroni), as far as the number of pairs allows."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as much one way has as another. low, high: the interval that holds it with `LEVEL`."""

    value: float
    low: float
    high: float
    pairs: int

    @property
    def differs(self) -> bool:
        """Whether 1, no difference, is outside the interval."""
        return not self.low <= 1.0 <= self.high


def fewest_pairs(together: int) -> int:
    """With which as many intervals hold with `LEVEL` all at once: the widest of n pairs leaves 2 of 2^n signs out."""
    return 1 + ceil(log2(together / (1.0 - LEVEL)))


def ratio(ours: Sequence[float], theirs: Sequence[float], together: int = 1) -> Ratio | None:
    """Of figures that came in pairs, all positive; None with fewer pairs than `FEWEST_PAIRS`. together: how many such
    intervals are to hold at once; with fewer pairs than that takes it is the widest that there is.
    """
    logs = [log(a / b) for a, b in zip(ours, theirs, strict=True)]
    count = len(logs)
    if count < FEWEST_PAIRS:
        return None
    if not all(map(isfinite, logs)):
        raise ValueError("a ratio needs figures over 0")
    means = sorted((logs[a] + logs[b]) / 2 for a in range(count) for b in range(a, count))
    beyond = _left_out(count, together)
    return Ratio(exp(median(means)), exp(means[beyond]), exp(means[-1 - beyond]), count)


@cache
def _left_out(count: int, together: int = 1) -> int:
    """How many of the pairwise means lie outside the interval at each end."""
    tail = (1.0 - LEVEL) / together / 2 * 2**count
    ways, sum_so_far, rank = _ways(count), 0, 0
    while sum_so_far + ways[rank] <= tail:
        sum_so_far += ways[rank]
        rank += 1
    return max(0, rank - 1)


def _ways(count: int) -> list[int]:
    """In how many of the 2^count ways to give signs the ranks 1 to count add up to each sum."""
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    return ways
