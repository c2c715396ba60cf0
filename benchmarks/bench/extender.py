"""The extender's rows: what kube-scheduler waits for, and what a large cluster costs at rest and at the start."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench.row import Row
from benchmarks.extender import at_rest, listing, over_http

MIB_MOST = 1024.0

PARTS = 5
"""Of the calls for 5,000 names, so that a p99 has more than one value."""


def scheduler_calls(*, quick: bool) -> list[Row]:
    """Both verbs over HTTP, for 500 names beside a constant answer, and for 5,000."""
    few = over_http.measured(500, 60 if quick else 300)
    rows = [
        Row(f"filter + prioritize, 500 names, {kind}", f"x {floor}", most, over_http.ratios(few, kind, floor))
        for kind, most in (("not opted in", 1.1), ("opted in", 2.0))
        for floor in over_http.FLOORS
    ]
    many = over_http.measured(5000, 20 if quick else 200 * PARTS)
    kinds: list[tuple[str, str, bool]] = [(kind, kind, True) for kind in ("opted in", "exclusive CPUs", "refuse mode")]
    kinds += [(f"{floor} beside opted in", f"a constant answer, {floor}", False) for floor in over_http.FLOORS]
    for spans, kind, judged in kinds:
        what = f"filter + prioritize, 5,000 names, {kind}"
        rows.append(Row(what, "ms", 10.0 if judged else None, many[spans]))
        if not quick:
            rows.append(Row(f"{what}, p99", "ms", 25.0 if judged else None, _tails(many[spans])))
    return rows


def _tails(spans: Sequence[float]) -> list[float]:
    """The p99 of each part of the calls, in the order in which they were made."""
    size = len(spans) // PARTS
    return [over_http.quantile(spans[part * size : (part + 1) * size], 0.99) for part in range(PARTS)]


def reports_at_rest(*, quick: bool) -> list[Row]:
    nodes = 500 if quick else 5000
    figures = at_rest.measured(nodes)
    return [
        Row(f"{nodes:,} enforcers' reports at rest", "% of a core", 30.0, [100 * figures["cores"]]),
        Row(f"memory with {nodes:,} enforcers (RSS, peak)", "MiB", MIB_MOST, [figures["peak_mib"]]),
    ]


def listed_pods(*, quick: bool) -> list[Row]:
    pods = 15_000 if quick else 150_000
    figures = listing.measured(pods)
    return [
        Row(f"{pods:,} pods, from the start to ready", "s", 60.0, [figures["seconds"]]),
        Row(f"memory with {pods:,} pods (RSS, peak)", "MiB", MIB_MOST, [figures["peak_mib"]]),
    ]
