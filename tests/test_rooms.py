"""What the rooms of the house promise to whoever reads them: short modules, one name for one thing, and packages that say what lives in them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
HALVES = {
    "enforcer": ("enforcer",),
    "extender": ("extender",),
    "placement": ("placement",),
    "standins": ("standins",),
    "cluster": ("cluster",),
    "kubectl_numakin": ("kubectl_numakin",),
}
SOURCES = ("placement", "enforcer", "extender", "process", "proto", "standins", "cluster", "kubectl_numakin")

MIDDLE = 120


def modules(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in found if "_pb2" not in path.name]


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_the_median_module_is_short():
    assert median(lines(path) for path in modules(*SOURCES) if path.name != "__init__.py") < MIDDLE


@pytest.mark.parametrize("half", HALVES)
def test_a_class_name_means_one_thing_in_a_half(half: str):
    where = defaultdict(list)
    for path in modules(*HALVES[half]):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_each_package_says_what_lives_in_it():
    silent = [
        path.parent
        for path in modules(*SOURCES)
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert [str(folder.relative_to(ROOT)) for folder in silent] == []
