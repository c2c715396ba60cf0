"""Boxes, arrows and words as SVG, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1b1f24 }
  .name { font-weight: 600 }
  .small { font-size: 10.5px; fill: #57606a }
  .title { font-size: 15px; font-weight: 600 }
  .box { fill: #f6f8fa; stroke: #8c959f }
  .ours { fill: #ddf4ff; stroke: #0969da }
  .panel { fill: none; stroke: #d0d7de; stroke-dasharray: 4 3 }
  .arrow { fill: none; stroke: #57606a; stroke-width: 1.2 }
  .head { fill: #57606a }
  .sheet { fill: #ffffff }
"""
"""Dark text on a sheet of its own: the picture does not take its colours from the page around it."""


@dataclass(frozen=True, slots=True)
class Box:
    """left, top, width, height: in pixels. kind: a class of STYLE. lines: under the name. hint: shown by a pointer."""

    name: str
    left: float
    top: float
    width: float
    height: float
    lines: Sequence[str] = ()
    kind: str = "box"
    hint: str = ""

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def svg(self) -> str:
        at = f'x="{self.left:.0f}" y="{self.top:.0f}" width="{self.width:.0f}" height="{self.height:.0f}"'
        parts = [f'<rect class="{self.kind}" {at} rx="6"/>', text(self.middle, self.top + 18, self.name, "name")]
        parts += [text(self.middle, self.top + 34 + 14 * row, line, "small") for row, line in enumerate(self.lines)]
        hint = f"<title>{escape(self.hint)}</title>" if self.hint else ""
        return f"<g>{hint}{''.join(parts)}</g>"


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def arrow(points: Sequence[tuple[float, float]], *, both: bool = False) -> str:
    """A line with a head at its end, or at both."""
    path = " L".join(f"{x:.0f},{y:.0f}" for x, y in points)
    start = ' marker-start="url(#head)"' if both else ""
    return f'<path class="arrow" d="M{path}" marker-end="url(#head)"{start}/>'


def sheet(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """The whole file."""
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path class="head" d="M0,0 L8,4 L0,8 z"/></marker>'
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n<defs>{head}</defs>\n'
        f'<rect class="sheet" width="{width:.0f}" height="{height:.0f}"/>\n{body}\n</svg>\n'
    )
