"""Pairs of runs, with numakin and without it in turn, and what each pod has with it over what it has without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.harm.node import Figures, Node, Times
from benchmarks.harm.situations import Pod
from numakin.compare.statistics import Ratio, ratio

LEAST = 0.98
"""Below it a pod is worse off."""

Run = dict[str, Figures]


@dataclass(frozen=True, slots=True)
class PodRatios:
    """What a pod has with numakin over what it has without, pair by pair. speed: 1 / p99, so that less is worse here
    too. cpus: where it was at the end of the last run with numakin.
    """

    situation: str
    pod: Pod
    throughput: Sequence[float]
    speed: Sequence[float]
    cpus: str

    @property
    def figures(self) -> Mapping[str, Sequence[float]]:
        return {"throughput": self.throughput, "p99": self.speed}


def pairs(
    node: Node, pods: Sequence[Pod], times: Times, count: int, told: Callable[[str], None]
) -> list[tuple[Run, Run]]:
    """Each with numakin first, then without; which of the two is run first changes, and work comes at other moments in
    each pair.
    """
    made = []
    for number in range(count):
        runs = {}
        for numakin in (True, False) if number % 2 else (False, True):
            runs[numakin] = node.run(pods, times, number, numakin=numakin)
        made.append((runs[True], runs[False]))
        told(f"pair {number + 1} of {count}")
    return made


def ratios(situation: str, pods: Sequence[Pod], runs: Sequence[tuple[Run, Run]]) -> list[PodRatios]:
    return [
        PodRatios(
            situation,
            pod,
            [ours[pod.name].throughput / theirs[pod.name].throughput for ours, theirs in runs],
            [theirs[pod.name].p99_ms / ours[pod.name].p99_ms for ours, theirs in runs],
            runs[-1][0][pod.name].cpus,
        )
        for pod in pods
    ]


def interval(values: Sequence[float]) -> Ratio:
    """With its 95 %; as wide as all values where they are too few."""
    return ratio(values, [1.0] * len(values)) or Ratio(median(values), min(values), max(values), len(values))


def verdict(values: Sequence[float]) -> str:
    """Empty where the pod is no worse off; `by chance` where the interval holds the least that is wanted."""
    found = interval(values)
    if found.value >= LEAST:
        return ""
    return "WORSE" if found.high < LEAST else "worse, by chance"
