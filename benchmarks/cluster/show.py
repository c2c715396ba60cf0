"""What a person sees of a simulation."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.result import Finding, Latency, Outcome

WIDTH = 100
"""Columns that the table needs, also where there is no terminal."""


def outcome(console: Console, result: Outcome) -> None:
    console.print(_scenarios(result))
    for finding in result.findings:
        if finding.remark:
            console.print(f"  [bold]{finding.scenario}[/]: {finding.remark}", soft_wrap=True, highlight=False)
    console.print(_latencies(result.latencies))
    idle = "" if result.idle_share is None else f", {result.idle_share:.1%} of a CPU when nothing happens"
    console.print(
        f"  extender: {result.cpu_s:.1f} CPU seconds{idle}, peak RSS {result.peak_rss >> 20} MiB; nominated after "
        f"{1e3 * result.nominated_p50:.1f} ms (p50), {1e3 * result.nominated_p99:.1f} ms (p99) from the binding",
        soft_wrap=True,
        highlight=False,
    )
    console.print(f"  placements {result.findings[-1].placements}; {result.seconds:.0f} s in all\n", highlight=False)
    if result.errors:
        console.print(f"  [bold red]{len(result.errors)} errors[/], the first and the last:", highlight=False)
        for text in (result.errors[0], result.errors[-1]):
            console.print(f"    {text}", soft_wrap=True, highlight=False, markup=False)
    for text in result.missing:
        console.print(f"  [yellow]not shown:[/] {text}", soft_wrap=True)


def _scenarios(result: Outcome) -> Table:
    table = Table(
        title=f"{result.nodes} nodes, seed {result.seed}", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("scenario", no_wrap=True)
    for column in ("pods", "s", "locality", "share", "kept", "decl.", "late", "empty", "failed", "hidden", "over"):
        table.add_column(column, justify="right", no_wrap=True)
    for finding in result.findings:
        table.add_row(*_row(finding))
    return table


def _row(finding: Finding) -> list[str]:
    sums = finding.nominations
    counts = (
        [sums.kept, sums.declined, sums.late, sums.empty, sums.failed, finding.hidden] if finding.pods else [""] * 6
    )
    over = f"[bold red]{finding.over_commitments}" if finding.over_commitments else "0"
    pods = str(finding.pods or "")
    places = (f"{finding.locality:.3f}", f"{finding.share:.3f}")
    return [finding.scenario, pods, f"{finding.seconds:.1f}", *places, *map(str, counts), over]


def _latencies(rows: tuple[Latency, ...]) -> Table:
    table = Table(
        title="what kube-scheduler waits for, ms", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in ("verb", "nodes offered", "calls", "p50", "p99", "over 1 s"):
        table.add_column(column, justify="left" if column == "verb" else "right")
    for row in rows:
        times = (f"{1e3 * row.p50:.1f}", f"{1e3 * row.p99:.1f}")
        table.add_row(row.verb, str(row.offered), str(row.calls), *times, str(row.lost or ""))
    return table
