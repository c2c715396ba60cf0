"""`docs/rooms.svg`: the rooms of the two programs and of the ground floor, and who imports whom."""

from __future__ import annotations

import ast
from collections import defaultdict

from tools.reference.drawing import Box, arrow, sheet, text
from tools.reference.imports import ROOT, graph, levels, modules, reduced

PANELS = ("enforcer", "extender", "numakin.placement")
WIDTH, HEIGHT, GAP, RISE, EDGE = 138, 44, 14, 46, 24


def picture() -> str:
    parts, left, lowest = [], EDGE, 0.0
    for package in PANELS:
        boxes, arrows, width, height = _panel(package, left)
        parts += [
            f'<rect class="panel" x="{left - 12}" y="44" width="{width + 24:.0f}" height="{height:.0f}" rx="8"/>',
            text(left + width / 2, 34, f"{package.replace('.', '/')}/", "title"),
            *arrows,
            *(box.svg() for box in boxes),
        ]
        left += int(width) + 48
        lowest = max(lowest, height)
    note = (
        "An arrow: imports; those that others imply are left out. Beneath a name: what it imports of the ground floor."
    )
    parts.append(text(EDGE - 12, lowest + 66, note, "small", "start"))
    return sheet(left - 12, lowest + 80, "The rooms of the house and who imports whom", parts)


def _panel(package: str, left: float) -> tuple[list[Box], list[str], float, float]:
    """Boxes row by row, the highest room on top; its width and height."""
    edges, outside = graph(package)
    height = levels(edges)
    rows: dict[int, list[str]] = defaultdict(list)
    for name in sorted(edges):
        rows[height[name]].append(name)
    width = max(len(row) for row in rows.values()) * (WIDTH + GAP) - GAP
    placed: dict[str, Box] = {}
    for place, level in enumerate(sorted(rows, reverse=True)):
        names = _ordered(rows[level], placed, edges)
        start = left + (width - len(names) * (WIDTH + GAP) + GAP) / 2
        for column, name in enumerate(names):
            top = 60 + place * (HEIGHT + RISE)
            placed[name] = _box(package, name, start + column * (WIDTH + GAP), top, outside[name])
    arrows = [
        arrow([(placed[name].middle, placed[name].bottom), (placed[other].middle, placed[other].top)])
        for name, others in sorted(reduced(edges).items())
        for other in sorted(others)
        if placed[other].top > placed[name].top
    ]
    return list(placed.values()), arrows, width, len(rows) * (HEIGHT + RISE) + 4


def _ordered(names: list[str], placed: dict[str, Box], edges: dict[str, set[str]]) -> list[str]:
    """Each below those that import it, as far as it goes."""

    def pull(name: str) -> float:
        above = [box.middle for user, box in placed.items() if name in edges[user]]
        return sum(above) / len(above) if above else 0.0

    return sorted(names, key=lambda name: (pull(name), name))


def _box(package: str, name: str, left: float, top: float, uses: set[str]) -> Box:
    word = name.removeprefix(f"{package}.") if name != package else f"{package.replace('.', '/')}/*.py"
    return Box(word, left, top, WIDTH, HEIGHT, (", ".join(sorted(uses)) or "—",), "ours", _about(package, name))


def _about(package: str, name: str) -> str:
    """The first sentence of what the room says of itself."""
    path = dict(modules(package))[name]
    document = ast.get_docstring(ast.parse(path.read_text())) or str(path.relative_to(ROOT))
    return " ".join(document.split("\n\n")[0].split())
