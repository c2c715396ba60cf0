"""The result in words: what may be concluded, what may not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from numakin.compare.rounds import Comparison, Result, summary
from numakin.compare.statistics import FEWEST_PAIRS, LEVEL, fewest_pairs

NOT_MEASURED = "-"
FIGURES = {"throughput": "throughput", "latency": "p99 latency"}


def table(result: Result, *, millis: bool) -> Table:
    """A row for each way; without the columns of what was never measured. millis: the unit of latencies, else yours."""
    rows = [summary(result.rounds, way) for way in result.design.ways]
    columns = {
        "THROUGHPUT/S": [number(row.throughput) for row in rows],
        "P99 MS" if millis else "P99": [number(row.latency) for row in rows],
        "LOCAL": [_share(row.local) for row in rows],
        "REMOTE PAGES": [_share(row.remote_pages) for row in rows],
    }
    measured = {column: cells for column, cells in columns.items() if set(cells) != {NOT_MEASURED}}
    made = Table("WAY", box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in measured:
        made.add_column(column, justify="right")
    for cells in zip(result.design.ways, *measured.values(), strict=True):
        made.add_row(*cells)
    return made


def conclusions(result: Result) -> Iterator[str]:
    """A line for each comparison, or one that says why there is none."""
    pairs = len(result.rounds)
    if result.cut_short:
        yield f"ended early, by a failure after {pairs} complete rounds: {result.cut_short}"
    if pairs < FEWEST_PAIRS:
        yield f"{pairs} rounds are too few to conclude anything: {FEWEST_PAIRS} at least"
        return
    for control in result.controls:
        if control.ratio is None and any(each.ratio for each in result.compared if each.figure == control.figure):
            yield (
                f"nothing can be concluded of {FIGURES[control.figure]}: {control.ours}, the control, did not have it "
                "in every run"
            )
        elif control.noisy:
            yield (
                f"nothing can be concluded of {FIGURES[control.figure]}: {control.ours} differs from "
                f"{control.theirs}, which is the same, by {_times(control)}; something else changes more than what is "
                "measured"
            )
        else:
            yield from (_concluded(each) for each in result.compared if each.figure == control.figure)
    if result.measured:
        yield _sure(result.measured, pairs)


def _sure(intervals: int, pairs: int) -> str:
    """How sure it is, for that many intervals at once."""
    needed = fewest_pairs(intervals)
    how = f"{pairs} pairs, exact signed ranks"
    if pairs < needed:
        return f"each interval holds the true ratio with {LEVEL:.0%}, all {intervals} take {needed} rounds; {how}"
    if intervals == 1:
        return f"the interval holds the true ratio with {LEVEL:.0%}; {how}"
    return f"all {intervals} intervals hold the true ratios with {LEVEL:.0%}; {how}"


def as_json(result: Result, about: dict[str, Any]) -> dict[str, Any]:
    """Every run, and what was made of them."""
    return {
        **about,
        "conclusive": result.conclusive,
        "cut_short": result.cut_short,
        "ways": [asdict(summary(result.rounds, way)) for way in result.design.ways],
        "compared": [asdict(comparison) for comparison in result.compared],
        "control": asdict(result.controls[0]),
        "controls": [asdict(control) for control in result.controls],
        "conclusions": list(conclusions(result)),
        "rounds": [{name: asdict(run) for name, run in runs.items()} for runs in result.rounds],
    }


def _concluded(comparison: Comparison) -> str:
    compared = f"{FIGURES[comparison.figure]}, {comparison.ours} / {comparison.theirs}"
    if comparison.ratio is None:
        return f"{compared}: it was not reported, or 0, in some run"
    if not comparison.ratio.differs:
        return f"{compared}: no difference can be distinguished from noise: {_times(comparison)}"
    better = (comparison.ratio.value > 1) == (comparison.figure == "throughput")
    return f"{compared}: {_times(comparison)}: {comparison.ours} is {'better' if better else 'worse'}"


def _times(comparison: Comparison) -> str:
    assert comparison.ratio is not None
    return f"x {comparison.ratio.value:.3f} ({comparison.ratio.low:.3f} to {comparison.ratio.high:.3f})"


def number(value: float | None) -> str:
    """Of any size: rates and latencies are in units of the user's own."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _share(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.0%}"
