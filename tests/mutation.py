"""Puts faults into the code, one at a time, and tells which of them the tests notice.

    python -m tests.mutation [--faults 40] [--seed 1] [--only PACKAGE] [--whole]

A sample, drawn by the seed, of small faults in `numakin.placement`, `enforcer.hook` and `extender`: a comparison, a condition, an
operator, a number or a call that is another, or is missing. Each is put into a copy of this checkout, in which those tests
run that mirror the module: its own file of tests, then its folder, then these as `make test-all` runs them. --whole:
what they do not notice is tried by all of `make test` too, ten minutes each. A test counts if it passes without the
fault.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests import examples

ROOT = Path(__file__).parents[1]
PACKAGES = ("numakin/placement", "enforcer/hook", "extender")
LONGEST_S = 1200
"""Of a run of tests; a fault may make one hang, which then has noticed it."""

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "*_cache", "__pycache__", "build", "node_modules", ".hypothesis")

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Fault:
    """path: of the module, in the checkout. before, after: source text; it stands at offset."""

    path: str
    line: int
    offset: int
    before: str
    after: str

    def put_into(self, text: str) -> str:
        return text[: self.offset] + self.after + text[self.offset + len(self.before) :]

    def __str__(self) -> str:
        before, after = (re.sub(r"\s+", " ", part) for part in (self.before, self.after))
        return f"{self.path}:{self.line}: {before}  ->  {after}"


@cache
def faults_of(path: str, text: str) -> tuple[Fault, ...]:
    """All that this program knows to put into a module."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()
    found = []
    for node in _judged(ast.parse(text)):
        begin, end = (
            starts[line - 1] + column
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        )
        for after in _others(node):
            before = data[begin:end].decode()
            found.append(Fault(path, node.lineno, len(data[:begin].decode()), before, after))
    return tuple(found)


def _judged(node: ast.AST) -> Iterator[ast.expr | ast.Expr]:
    """Expressions and calls for their effect, without types, what is logged and what is raised, which no test reads."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr) or _logs(child):
                continue
            if isinstance(child, ast.expr | ast.Expr):
                yield child
            if isinstance(child, ast.AST):
                yield from _judged(child)


def _logs(node: object) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] in ("log", "_log")


def _others(node: ast.AST) -> Iterator[str]:
    """What might stand in its place, as source text."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _OTHER:
            yield _with(node, lambda other: other.ops.__setitem__(0, _OTHER[type(operator)]()))
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) if type(operator) in _OTHER:
            yield _with(node, lambda other: setattr(other, "op", _OTHER[type(operator)]()))
        case ast.UnaryOp(op=ast.Not()):
            yield f"({ast.unparse(node.operand)})"
        case ast.IfExp():
            yield f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield repr(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _OTHER_NAME:
            yield _with(node, lambda other: setattr(other.func, "id", _OTHER_NAME[name]))
        case ast.Expr(value=ast.Call()):
            yield "pass"


def _with(node: ast.expr, change: Callable[[Any], object]) -> str:
    other = copy.deepcopy(node)
    change(other)
    return f"({ast.unparse(other)})"


def mirrors(path: str) -> list[list[str]]:
    """Tests that mirror a module: its own, then those of its folder, then those beside the folder's package."""
    module = ROOT / path
    folder = ROOT / "tests" / module.parent.relative_to(ROOT)
    own = sorted(folder.glob(f"test_{module.stem}*.py"))
    beside = sorted(folder.glob("test_*.py")) if folder == ROOT / "tests" / "extender" else [folder]
    above = [ROOT / "tests" / package for package in PACKAGES[:2] if path.startswith(f"{package}/")]
    steps = [own, [each for each in beside if each.exists()], [each for each in above if each not in beside]]
    return [[str(each.relative_to(ROOT)) for each in step] for step in steps if step]


FIRST = ("-m", "not thorough", f"--hypothesis-profile={examples.FEWER}")
THOROUGH: tuple[str, ...] = ()
"""pytest's options of `make test`, and of `make test-all`, which runs more tests, and more examples of some."""


class Copy:
    """Of this checkout, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "checkout"
        shutil.copytree(ROOT, self._root, symlinks=True, ignore=NOT_COPIED)

    def noticed_by(self, fault: Fault, tests: list[str], tier: Sequence[str] = FIRST) -> str:
        """The first test that fails with the fault and passes without it; "" where none does. tier: pytest's options."""
        module = self._root / fault.path
        text = module.read_text()
        module.write_text(fault.put_into(text))
        failed = self._failed(tests, tier)
        module.write_text(text)
        return failed if failed and not self._failed([failed.removesuffix(HUNG)], tier) else ""

    def _failed(self, tests: list[str], tier: Sequence[str]) -> str:
        environment = os.environ | {"PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": ""}
        options = ["-q", "-x", "-rfE", "--no-header", "-p", "no:cacheprovider", *tier]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        try:
            done = subprocess.run(
                command, cwd=self._root, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return f"{tests[0]}{HUNG}"
        if done.returncode in (0, 5):  # 5: there is none
            return ""
        named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
        return named[1] if named else tests[0]


HUNG = " (hangs)"


def sample(number: int, seed: int, only: str = "") -> list[Fault]:
    """The same for the same seed and code; each package has its turn."""
    drawn = random.Random(seed)
    packages = [package for package in PACKAGES if package.startswith(only)]
    by_package = []
    for package in packages:
        paths = [path for path in sorted((ROOT / package).rglob("*.py")) if mirrors(str(path.relative_to(ROOT)))]
        found = [fault for path in paths for fault in faults_of(str(path.relative_to(ROOT)), path.read_text())]
        by_package.append(drawn.sample(found, min(len(found), -(-number // len(packages)))))
    turns = [fault for row in zip(*by_package, strict=False) for fault in row]
    return turns[:number]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="numakin/placement, enforcer/hook or extender")
    parser.add_argument("--whole", action="store_true", help="try all of `make test` on what the mirrors do not notice")
    asked = parser.parse_args(arguments)
    faults, noticed = sample(asked.faults, asked.seed, asked.only), Counter[Sequence[str] | None]()
    print(f"seed {asked.seed}: {len(faults)} faults", flush=True)
    with tempfile.TemporaryDirectory(prefix="numakin-mutation-") as folder:
        copied = Copy(Path(folder))
        for number, fault in enumerate(faults, 1):
            steps = [(step, tier) for tier in (FIRST, THOROUGH) for step in mirrors(fault.path)]
            steps += [(["tests"], FIRST)] if asked.whole else []
            found = ((copied.noticed_by(fault, step, tier), tier) for step, tier in steps)
            by, tier = next(((test, tier) for test, tier in found if test), ("", None))
            noticed[tier] += 1
            only = " (in `make test-all` alone)" if tier == THOROUGH else ""
            print(f"{number}. {fault}\n     {by or 'NOT NOTICED'}{only}", flush=True)
    print(f"seed {asked.seed}: of {len(faults)} {noticed[FIRST]} noticed, {noticed[THOROUGH]} by `make test-all` alone")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
