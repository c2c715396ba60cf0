"""Which room imports which: read from the source, as import-linter reads it."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

Graph = dict[str, set[str]]
"""By room the rooms that it imports."""


def folder(package: str) -> Path:
    return ROOT / package.replace(".", "/")


def modules(package: str) -> Iterator[tuple[str, Path]]:
    """Dotted names and files, without generated code."""
    for path in sorted(folder(package).rglob("*.py")):
        if "_pb2" not in path.name:
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """Dotted names of what a file imports, wherever in it. Each file is asked about for each room, and read once."""
    return tuple(_imported(ast.parse(path.read_text())))


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms(package: str) -> Mapping[str, str]:
    """By dotted name of a module its room: the folder right below the package. A module that lies in no folder, and
    that some room imports, is a room of its own; the others together are the package's own.
    """
    names = dict(modules(package))
    folders = {path.parent.name for path in names.values() if path.parent.parent == folder(package)}
    room = {}
    for name in names:
        second = name.removeprefix(package).removeprefix(".").partition(".")[0]
        room[name] = f"{package}.{second}" if second in folders else ""
    wanted = {what for name, path in names.items() if room[name] for what in _known(path, names)}
    return {name: room[name] or (name if name in wanted and name != package else package) for name in names}


def graph(package: str) -> tuple[Graph, dict[str, set[str]]]:
    """Imports between the package's rooms, and by room the other packages of the project that it imports."""
    names, room = dict(modules(package)), rooms(package)
    inside: Graph = {name: set() for name in room.values()}
    outside: dict[str, set[str]] = defaultdict(set)
    others = {"numakin.placement", "numakin.wire", "numakin.process", "enforcer", "extender"} - {package}
    for name, path in names.items():
        for what in _known(path, names):
            if room[what] != room[name]:
                inside[room[name]].add(room[what])
        wanted = {other for what in imported(path) for other in others if f"{what}.".startswith(f"{other}.")}
        outside[room[name]] |= {other.removeprefix("numakin.") for other in wanted}
    return inside, outside


def _known(path: Path, names: Mapping[str, Path]) -> Iterator[str]:
    for what in imported(path):
        for name in (what, what.rpartition(".")[0]):
            if name in names:
                yield name
                break


def levels(edges: Graph) -> dict[str, int]:
    """How high each room lies: above all that it imports; the lowest on 0. A circle lies where it is met first."""
    height: dict[str, int] = {}

    def of(name: str, path: tuple[str, ...]) -> int:
        if name not in height:
            below = [of(other, (*path, name)) for other in sorted(edges[name]) if other not in (*path, name)]
            height[name] = 1 + max(below, default=-1)
        return height[name]

    for name in sorted(edges):
        of(name, ())
    return height


def reduced(edges: Graph) -> Graph:
    """Without the arrows that others already imply: a to c where there are a to b and b to c."""

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        return any(
            other == goal or (other not in seen and reaches(other, goal, seen | {other})) for other in edges[start]
        )

    return {
        name: {
            other
            for other in others
            if not any(middle != other and reaches(middle, other, {name, middle}) for middle in others)
        }
        for name, others in edges.items()
    }
