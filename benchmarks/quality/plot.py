"""The results as a picture: for each placer the range, the quartiles and the median of its shares of the best known."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import quantiles

from benchmarks.quality.run import OURS, PLACERS, Result
from benchmarks.quality.table import outcomes

LEFT, WIDTH, RIGHT = 150, 500, 20
ROW, TOP, BOTTOM = 30, 50, 30
FONT = 'font-family="sans-serif"'
INK, PALE, OWN = "#333", "#b8c4d0", "#2b7a4b"


def svg(results: Sequence[Result], title: str) -> str:
    height = TOP + ROW * len(PLACERS) + BOTTOM
    whole = LEFT + WIDTH + RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {height}" font-size="12" {FONT}>',
        f'<rect width="{whole}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14" fill="{INK}">{escape(title)}</text>',
    ]
    for tenth in range(0, 11, 2):
        x = _x(tenth / 10)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP - 12}" y2="{height - BOTTOM}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x}" y="{height - 10}" text-anchor="middle" fill="{INK}">{tenth / 10:.1f}</text>')
    for row, placer in enumerate(PLACERS):
        shares = [outcome.share for outcome in outcomes(results, placer)]
        parts += _row(TOP + row * ROW, placer, shares)
    return "\n".join([*parts, "</svg>\n"])


def _row(y: int, placer: str, shares: Sequence[float]) -> list[str]:
    low, middle, high = quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else [shares[0]] * 3
    colour = OWN if placer.startswith(OURS) else PALE
    return [
        f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end" fill="{INK}">{escape(placer)}</text>',
        f'<line x1="{_x(min(shares))}" x2="{_x(max(shares))}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>',
        f'<rect x="{_x(low)}" y="{y - 7}" width="{max(1.0, _x(high) - _x(low)):.1f}" height="14" fill="{colour}"/>',
        f'<line x1="{_x(middle)}" x2="{_x(middle)}" y1="{y - 9}" y2="{y + 9}" stroke="{INK}" stroke-width="2"/>',
    ]


def _x(share: float) -> float:
    return round(LEFT + WIDTH * share, 1)
