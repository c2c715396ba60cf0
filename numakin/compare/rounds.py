"""All ways in turn: each round runs every one once, in an order of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from typing import Protocol, TypeVar

from numakin.compare.design import Design
from numakin.compare.running import Run
from numakin.compare.statistics import FEWEST_PAIRS, Ratio, ratio

Round = dict[str, Run]

FIGURES = ("throughput", "latency")


class Named(Protocol):
    """A way to run what is measured."""

    @property
    def name(self) -> str: ...


W = TypeVar("W", bound=Named)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many times as much `ours` has as `theirs`, of one figure; None: too few pairs, or it was not reported."""

    ours: str
    theirs: str
    figure: str
    ratio: Ratio | None

    @property
    def noisy(self) -> bool:
        """Of a control: the machine's own ups and downs look like an effect."""
        return self.ratio is not None and self.ratio.differs


@dataclass(frozen=True, slots=True)
class Result:
    """What all rounds show. controls: the same way against itself, of each figure. cut_short: what failed before the
    last round.
    """

    design: Design
    rounds: tuple[Round, ...]
    compared: tuple[Comparison, ...]
    controls: tuple[Comparison, ...]
    cut_short: str = ""

    @property
    def measured(self) -> int:
        """How many comparisons there are: what is said of them holds for all at once."""
        return sum(comparison.ratio is not None for comparison in self.compared)

    @property
    def conclusive(self) -> bool:
        """Whether any difference is significant, of a figure whose control was measured and differs not from itself."""
        controlled = {control.figure for control in self.controls if control.ratio is not None and not control.noisy}
        return any(
            comparison.ratio is not None and comparison.ratio.differs
            for comparison in self.compared
            if comparison.figure in controlled
        )


def in_turn(
    run: Callable[[W], Run], arms: Sequence[W], rounds: int, seed: int, report: Callable[[int, Run], None]
) -> Iterator[Round]:
    """One run to warm up, which is left out; then the rounds, without the same way twice in succession. report: called
    after each run with the round's number.
    """
    random = Random(seed)  # noqa: S311 - an order of runs is no secret
    last = arms[0]
    run(last)
    for number in range(1, rounds + 1):
        runs: Round = {}
        order = random.sample(arms, len(arms))
        if order[0].name == last.name:
            order.append(order.pop(0))
        last = order[-1]
        for arm in order:
            runs[arm.name] = run(arm)
            report(number, runs[arm.name])
        yield runs


def complete(rounds: Iterable[Round], failures: tuple[type[Exception], ...]) -> tuple[tuple[Round, ...], str]:
    """Those before the first of these failures, and what it says. It is raised where too few are left to conclude."""
    done: list[Round] = []
    try:
        for each in rounds:
            done.append(each)  # noqa: PERF402 - those before a failure are kept
    except failures as failure:
        if len(done) < FEWEST_PAIRS:
            raise
        return tuple(done), str(failure)
    return tuple(done), ""


def result(rounds: Sequence[Round], design: Design, cut_short: str = "") -> Result:
    """What may be concluded of them."""
    pairs = [(*pair, figure) for figure in FIGURES for pair in design.pairs]
    together = sum(_pairs(rounds, *pair) is not None for pair in pairs)
    compared = tuple(_compared(rounds, *pair, together) for pair in pairs)
    controls = tuple(_compared(rounds, *design.control, figure, 1) for figure in FIGURES)
    return Result(design, tuple(rounds), compared, controls, cut_short)


def _pairs(rounds: Sequence[Round], ours: str, theirs: str, figure: str) -> tuple[list[float], list[float]] | None:
    """The figures of both; None where it was not reported in every run."""
    mine, other = ([getattr(runs[name].figures, figure) for runs in rounds] for name in (ours, theirs))
    return (mine, other) if all((*mine, *other)) else None


def _compared(rounds: Sequence[Round], ours: str, theirs: str, figure: str, together: int) -> Comparison:
    pairs = _pairs(rounds, ours, theirs, figure)
    return Comparison(ours, theirs, figure, ratio(*pairs, together) if pairs else None)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one way: medians over its runs, means of what was sampled; None where nothing was."""

    arm: str
    throughput: float
    latency: float | None
    local: float | None
    remote_pages: float | None


def summary(rounds: Sequence[Round], arm: str) -> Summary:
    runs = [by_arm[arm] for by_arm in rounds]
    latencies = [run.figures.latency for run in runs if run.figures.latency is not None]
    local = [run.local for run in runs if run.local is not None]
    remote = [run.remote_pages for run in runs if run.remote_pages is not None]
    return Summary(
        arm,
        median(run.figures.throughput for run in runs),
        median(latencies) if latencies else None,
        fmean(local) if local else None,
        fmean(remote) if remote else None,
    )
