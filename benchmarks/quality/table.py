"""The results as tables that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from benchmarks.quality.run import OURS, PLACERS, Outcome, Result

GOAL_FILL, GOAL_MEDIAN, GOAL_WORST = 0.7, 0.95, 0.80
"""What numakin is to reach at this fill, as shares of the best known locality."""


def outcomes(results: Iterable[Result], placer: str) -> list[Outcome]:
    return [outcome for result in results for outcome in result.outcomes if outcome.placer == placer]


def text(results: Sequence[Result]) -> str:
    """Every table, and whether the goal is reached."""
    fills = sorted({result.case.fill for result in results})
    parts = [
        _by_placer(f"{fill:.0%} fill", [result for result in results if result.case.fill == fill]) for fill in fills
    ]
    if len(fills) > 1:
        parts.append(_by_placer("all", results))
    aimed = [result for result in results if result.case.fill == GOAL_FILL]
    if aimed:
        parts.append(_cut("by order, 70 % fill", aimed, lambda result: result.case.order))
        parts.append(_cut("by NUMA nodes, 70 % fill", aimed, lambda result: f"{result.case.numa_nodes:2d} NUMA nodes"))
        parts.append(_cut("by graph, 70 % fill", aimed, lambda result: result.case.graph))
        parts.append(_goal(aimed))
    return "\n\n".join(parts)


def _by_placer(title: str, results: Sequence[Result]) -> str:
    best = median(result.best for result in results)
    lines = [
        f"{title}: {len(results)} runs, best known locality {best:.2f} at the median",
        f"{'':20}{'share of best known':>21}{'locality':>10}{'wide':>7}{'moved':>7}{'over':>7}",
        f"{'':20}{'median':>7}{'worst':>7}{'best':>7}{'median':>10}{'most':>7}{'most':>7}{'milli':>7}",
    ]
    for placer in PLACERS:
        placed = outcomes(results, placer)
        shares = [outcome.share for outcome in placed]
        lines.append(
            f"{placer:20}{median(shares):7.3f}{min(shares):7.3f}{max(shares):7.3f}"
            f"{median(outcome.locality for outcome in placed):10.3f}{max(outcome.wide for outcome in placed):7d}"
            f"{max(outcome.moved for outcome in placed):7d}{max(outcome.oversubscribed for outcome in placed):7d}"
        )
    return "\n".join(lines)


def _cut(title: str, results: Sequence[Result], key: Callable[[Result], str]) -> str:
    """numakin's share, median and worst, for each value of the key."""
    lines = [f"{OURS}, {title}"]
    for value in dict.fromkeys(key(result) for result in results):
        shares = [outcome.share for outcome in outcomes([r for r in results if key(r) == value], OURS)]
        lines.append(f"{value:24}{median(shares):7.3f}{min(shares):7.3f}   {len(shares)} runs")
    return "\n".join(lines)


def _goal(results: Sequence[Result]) -> str:
    ours = outcomes(results, OURS)
    middle, worst = median(outcome.share for outcome in ours), min(outcome.share for outcome in ours)
    over = max(outcome.oversubscribed for outcome in ours)
    reached = middle >= GOAL_MEDIAN and worst >= GOAL_WORST and over == 0
    return (
        f"goal at 70 % fill (median {GOAL_MEDIAN}, worst {GOAL_WORST}, nothing oversubscribed): "
        f"{'reached' if reached else 'MISSED'} "
        f"(median {middle:.3f}, worst {worst:.3f}, oversubscribed {over} millicores)"
    )
