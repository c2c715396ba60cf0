"""The table of a soak: each fault, how often it was tried, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.soak.growth import Trend
from tests.soak.invariants import Invariant
from tests.soak.packets.link import Link
from tests.soak.rounds import Tally

COLUMNS = (
    Invariant.FAILED,
    Invariant.TOUCHED,
    Invariant.TWICE,
    Invariant.MISPLACED,
    Invariant.OUTLIVED,
    Invariant.UNSETTLED,
)


KERNEL = ("RetransSegs", "TCPOFOQueue", "TCPSACKReorder", "TCPDSACKRecv")
"""Of what TCP counts itself: segments sent again, segments that came before an earlier one, and what a sender was told of
its segments that came late or twice.
"""


def table(tally: Tally, trends: Sequence[Trend]) -> str:
    """Markdown. A container that came while two faults lasted counts for both."""
    head = ("fault", "tries", "containers created meanwhile", "slowest, s", *(invariant.value for invariant in COLUMNS))
    rows = [
        (
            name,
            tries,
            tally.created[name],
            f"{tally.slowest_s.get(name, 0.0):.1f}",
            *(tally.count(invariant, name) for invariant in COLUMNS),
        )
        for name, tries in sorted(tally.tries.items())
    ]
    memory = ("process", "samples", "MiB at first", "MiB at last", "descriptors at first", "at last")
    sizes = [
        (trend.role, trend.samples, *(f"{at.resident / (1 << 20):.1f}" for at in (trend.first, trend.last)),
         trend.first.descriptors, trend.last.descriptors)
        for trend in trends
    ]  # fmt: skip
    return f"{_markdown(head, rows)}\n\n{_markdown(memory, sizes)}\n"


def packets(links: Mapping[str, Link]) -> str:
    """Markdown: by node what became of the packets while they were scrambled, and what TCP at both ends saw of it. Empty
    without links.
    """
    if not links:
        return ""
    head = ("node", "packets", "lost", "sent twice", "held back", "overtaken", *(f"TCP: {key}" for key in KERNEL))
    rows = []
    for name, link in links.items():
        counts, ends = link.counts(), (link.node.tcp(), link.extender.tcp())
        seen = [sum(end.get(key, 0) for end in ends) for key in KERNEL]
        rows.append((name, counts.came, counts.lost, counts.duplicated, counts.held, counts.overtaken, *seen))
    return f"{_markdown(head, rows)}\n"


def summary(tally: Tally, killed: int, seconds: float) -> str:
    counts = ", ".join(f"{invariant.value} {tally.count(invariant)}" for invariant in Invariant)
    return f"{tally.rounds} rounds, {killed} processes killed, {sum(tally.tries.values())} faults, {seconds / 60:.0f} min: {counts}"


def _markdown(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
