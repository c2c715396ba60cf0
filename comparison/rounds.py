"""All ways in turn: each round runs every one once, in an order of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median
from typing import Protocol, TypeVar

from comparison.design import Design
from comparison.running import Run
from comparison.statistics import Ratio, ratio

Round = dict[str, Run]


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


@dataclass(frozen=True, slots=True)
class Result:
    """What all rounds show. control: the same way against itself."""

    design: Design
    rounds: tuple[Round, ...]
    compared: tuple[Comparison, ...]
    control: Comparison

    @property
    def noisy(self) -> bool:
        """The control differs from itself: the machine's own ups and downs look like an effect."""
        return self.control.ratio is not None and self.control.ratio.differs

    @property
    def conclusive(self) -> bool:
        """Whether any difference is significant."""
        return not self.noisy and any(
            comparison.ratio is not None and comparison.ratio.differs for comparison in self.compared
        )


def in_turn(
    run: Callable[[W], Run], arms: Sequence[W], rounds: int, seed: int, report: Callable[[int, Run], None]
) -> tuple[Round, ...]:
    """One run to warm up, which is left out; then the rounds, without the same way twice in succession. report: called
    after each run with the round's number.
    """
    random = Random(seed)  # noqa: S311 - an order of runs is no secret
    last = arms[0]
    run(last)
    done = []
    for number in range(1, rounds + 1):
        runs: Round = {}
        order = random.sample(arms, len(arms))
        if order[0].name == last.name:
            order.append(order.pop(0))
        last = order[-1]
        for arm in order:
            runs[arm.name] = run(arm)
            report(number, runs[arm.name])
        done.append(runs)
    return tuple(done)


def result(rounds: Sequence[Round], design: Design) -> Result:
    """What may be concluded of them."""
    compared = [_compared(rounds, *pair, figure) for figure in ("throughput", "latency") for pair in design.pairs]
    return Result(design, tuple(rounds), tuple(compared), _compared(rounds, *design.control, "throughput"))


def _compared(rounds: Sequence[Round], ours: str, theirs: str, figure: str) -> Comparison:
    mine, other = ([getattr(runs[name].figures, figure) for runs in rounds] for name in (ours, theirs))
    complete = all(value for value in (*mine, *other))
    return Comparison(ours, theirs, figure, ratio(mine, other) if complete else None)


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
