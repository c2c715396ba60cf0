"""What the rooms of the house promise to whoever reads them: one name for one thing, and packages that say what lives in them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = ("numakin", "enforcer", "extender")
SOURCES = (*PROGRAMS, "lab", "tools", "benchmarks")
HALVES = ("enforcer", "extender", "numakin/placement", "lab/standins", "numakin/kubectl")


def modules(*packages: str) -> list[Path]:
    """Without generated code."""
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if "_pb2" not in path.name]


@pytest.mark.parametrize("half", HALVES)
def test_a_class_name_means_one_thing_in_a_half(half: str):
    where = defaultdict(list)
    for path in modules(half):
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


def test_no_file_of_tests_is_imported():
    """What several of them need is in a module beside them, under its own name, its fixtures in `conftest`."""
    imports = {
        str(path.relative_to(ROOT)): node.module
        for path in modules("tests", "benchmarks")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    }
    assert imports == {}
