"""Paired measurements: a ratio of neighbours in time, in both orders, so that drift of the machine cancels. Pure."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of paired ratios and its standard error, by the spread of the middle half."""

    median: float
    error: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.4f} +-{self.error:.4f}"


def paired(with_probes: Callable[[], float], without: Callable[[], float], pairs: int) -> Ratio:
    """Cost with probes over cost without, `pairs` times, every second pair in the opposite order."""
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            on = with_probes()
            off = without()
        else:
            off = without()
            on = with_probes()
        ratios.append(on / off)
    return summary(ratios)


def summary(ratios: list[float]) -> Ratio:
    """The interquartile range stands for the spread, as a neighbour's burst of work spoils single pairs."""
    if len(ratios) < 2:
        return Ratio(ratios[0], math.inf, 1)
    low, _, high = statistics.quantiles(ratios, n=4)
    # 1.349: quartiles of a normal distribution in its deviations; 1.253: error of a median to that of a mean.
    return Ratio(statistics.median(ratios), 1.253 * (high - low) / 1.349 / math.sqrt(len(ratios)), len(ratios))
