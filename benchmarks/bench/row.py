"""One line of the table: a figure, how it spread, and the target it is compared with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class NotHere(Exception):
    """What this machine lacks for a row, by name."""


class Row(msgspec.Struct, frozen=True):
    """values: of all repetitions, in `unit`. most, least: the target, which the median may not be over, or not under;
    neither for what stands beside a figure that has one.
    """

    what: str
    unit: str
    most: float | None
    values: Sequence[float]
    least: float | None = None

    @property
    def quartiles(self) -> tuple[float, float, float]:
        if len(self.values) < 2:
            return (self.values[0],) * 3
        low, median, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, median, high

    @property
    def verdict(self) -> str:
        """`by chance` where the target lies between the quartiles: another run may say otherwise. Empty without one."""
        low, median, high = self.quartiles
        if self.least is not None:
            met = "met" if median >= self.least else "missed"
            return f"{met}, by chance" if low < self.least <= high else met
        if self.most is None:
            return ""
        met = "met" if median <= self.most else "missed"
        return f"{met}, by chance" if low <= self.most < high else met

    @property
    def target(self) -> str:
        if self.least is not None:
            return f">= {_short(self.least)} {self.unit}"
        return "" if self.most is None else f"<= {_short(self.most)} {self.unit}"


HEAD = ("what", "target", "median", "quartiles", "n", "")


def cells(row: Row) -> tuple[str, ...]:
    low, median, high = row.quartiles
    spread = f"{_short(low)} to {_short(high)}" if len(row.values) > 1 else ""
    return (
        row.what, row.target, f"{_short(median)} {row.unit}", spread, str(len(row.values)),
        row.verdict,
    )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """As Markdown, so that it can go into docs/performance.md as it is."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    drawn = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([drawn[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *drawn[1:]])


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
