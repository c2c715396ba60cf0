"""The result in words: what may be concluded, what may not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from comparison.arms import AGAIN, SPREAD, TOGETHER, UNPINNED
from comparison.rounds import Comparison, Result, summary
from comparison.statistics import FEWEST_PAIRS, LEVEL

WAYS = (TOGETHER, SPREAD, UNPINNED, AGAIN)
FIGURES = {"throughput": "throughput", "latency": "p99 latency"}


def table(result: Result) -> Table:
    """A row for each way."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    made.add_column("WAY")
    for column in ("THROUGHPUT/S", "P99 MS", "LOCAL", "REMOTE PAGES"):
        made.add_column(column, justify="right")
    for way in WAYS:
        row = summary(result.rounds, way)
        made.add_row(way, f"{row.throughput:,.0f}", _number(row.latency), _share(row.local), _share(row.remote_pages))
    return made


def conclusions(result: Result) -> Iterator[str]:
    """A line for each comparison, or one that says why there is none."""
    pairs = len(result.rounds)
    if pairs < FEWEST_PAIRS:
        yield f"{pairs} rounds are too few to conclude anything: {FEWEST_PAIRS} at least"
        return
    if result.noisy:
        assert result.control.ratio is not None
        yield (
            f"nothing can be concluded: {AGAIN} differs from {UNPINNED}, which is the same, by "
            f"{_times(result.control)}; something else on this machine changes more than what is measured"
        )
        return
    for comparison in result.compared:
        yield _concluded(comparison)
    yield f"each interval holds the true ratio with {LEVEL:.0%}; {pairs} pairs, exact signed ranks; LOCAL is sampled"


def as_json(result: Result, about: dict[str, Any]) -> dict[str, Any]:
    """Every run, and what was made of them."""
    return {
        **about,
        "conclusive": result.conclusive,
        "ways": [asdict(summary(result.rounds, way)) for way in WAYS],
        "compared": [asdict(comparison) for comparison in result.compared],
        "control": asdict(result.control),
        "conclusions": list(conclusions(result)),
        "rounds": [{name: asdict(run) for name, run in runs.items()} for runs in result.rounds],
    }


def _concluded(comparison: Comparison) -> str:
    compared = f"{FIGURES[comparison.figure]}, {comparison.ours} / {comparison.theirs}"
    if comparison.ratio is None:
        return f"{compared}: the client did not report it in every run"
    if not comparison.ratio.differs:
        return f"{compared}: no difference can be distinguished from noise: {_times(comparison)}"
    better = (comparison.ratio.value > 1) == (comparison.figure == "throughput")
    return f"{compared}: {_times(comparison)}: {comparison.ours} is {'better' if better else 'worse'}"


def _times(comparison: Comparison) -> str:
    assert comparison.ratio is not None
    return f"x {comparison.ratio.value:.3f} ({comparison.ratio.low:.3f} to {comparison.ratio.high:.3f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
