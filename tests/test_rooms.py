"""What the rooms of the house promise to whoever reads them: one name for one thing, and packages that say what lives in them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = ("numakin", "enforcer", "extender")
SOURCES = (*PROGRAMS, "lab", "tools", "benchmarks")
TOGETHER = (("enforcer", "extender", "numakin/placement"), ("lab/standins",), ("numakin/kubectl",))
"""Packages in which one reader follows a name from module to module."""


def modules(*packages: str) -> list[Path]:
    """Without generated code."""
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if "_pb2" not in path.name]


def named(body: list[ast.stmt]) -> Iterator[str]:
    """The classes and the aliases of types of a module. Type variables are a function's own."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar"
            if isinstance(target, ast.Name) and re.match("[A-Z][A-Za-z]*[a-z]", target.id) and not variable:
                yield target.id


@pytest.mark.parametrize("packages", TOGETHER, ids=lambda packages: packages[0])
def test_a_class_or_an_alias_of_a_type_means_one_thing(packages: tuple[str, ...]):
    where = defaultdict(list)
    for path in modules(*packages):
        for name in named(ast.parse(path.read_text()).body):
            where[name].append(str(path.relative_to(ROOT)))
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
        if re.search(r"^\s*from \S*\btest_", text := path.read_text(), re.MULTILINE)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    }
    assert imports == {}
