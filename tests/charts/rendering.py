"""The chart as Helm renders it: by Helm where there is one (tools/setup/helm), and by the part of its language that the chart
uses.

Our templates are generated in a handful of forms (if, with, range, a value through functions); anything else is an
error here. `test_chart.py` holds both ways to the same objects where Helm is there.
"""

from __future__ import annotations

import functools
import json
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.standins.patience import PATIENCE_S
from tests.manifests.rendered import parsed

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/numakin"
NAMESPACE = "numakin"

_ACTION = re.compile(r"(\s*)\{\{-\s*(.*?)\s*\}\}|\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_WORD = re.compile(r'"[^"]*"|\S+')

Values = Mapping[str, Any]


def values(changes: Values | None = None) -> dict[str, Any]:
    """The chart's own, with these in their place."""
    return _merged(yaml.safe_load((CHART / "values.yaml").read_text()), changes or {})


def by_hand(changes: Values | None = None) -> list[dict[str, Any]]:
    """The objects, by the templates' own few forms."""
    scope = {
        "Values": values(changes),
        "Release": {"Namespace": NAMESPACE},
        "Chart": yaml.safe_load((CHART / "Chart.yaml").read_text()),
    }
    result: list[dict[str, Any]] = []
    for path in sorted((CHART / "templates").rglob("*.yaml")):
        text, rest = _block(_parts(path.read_text()), 0, scope, scope)
        assert rest is None
        result += parsed(text)
    return result


def by_helm(changes: Values | None = None) -> list[dict[str, Any]]:
    """The objects, by `helm template`."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(dict(changes or {}), file)
        file.flush()
        done = template("--values", file.name)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def template(*options: str) -> subprocess.CompletedProcess[str]:
    named = ("template", "numakin", str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.34.0")
    return run_helm(*named, *options)


def run_helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Skips where there is no Helm."""
    command = [helm(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@functools.cache
def helm() -> str:
    """The program; skips where there is none."""
    command = [sys.executable, ROOT / "tools" / "setup" / "helm", "--there"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    return done.stdout.strip()


def _merged(before: Any, changes: Any) -> Any:
    if not (isinstance(before, dict) and isinstance(changes, Mapping)):
        return changes
    merged = {**before, **{key: _merged(before.get(key), value) for key, value in changes.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def _parts(text: str) -> list[tuple[str, str]]:
    """Texts and actions in turn; `{{-` has eaten the white space before it."""
    result, at = [], 0
    for match in _ACTION.finditer(text):
        result += [("text", text[at : match.start()]), ("action", match[2] if match[2] is not None else match[3])]
        at = match.end()
    return [*result, ("text", text[at:])]


def _block(
    parts: list[tuple[str, str]], at: int, root: Values, dot: Any, *, shown: bool = True
) -> tuple[str, int | None]:
    """Renders up to the `else` or `end` that closes it; None: up to the end of the file."""
    out = ""
    while at < len(parts):
        kind, text = parts[at]
        if kind == "text":
            out += text if shown else ""
        elif text in ("else", "end"):
            return out, at
        elif (term := text.partition(" ")[0]) in ("if", "with", "range"):
            more, at = _branch(parts, at, root, dot, term, shown=shown)
            out += more
        elif shown:
            out += str(_piped(text, root, dot))
        at += 1
    return out, None


def _branch(
    parts: list[tuple[str, str]], at: int, root: Values, dot: Any, text: str, *, shown: bool
) -> tuple[str, int]:
    subject = _piped(parts[at][1].partition(" ")[2], root, dot) if shown else None
    rounds = list(subject or ()) if text == "range" else [subject] if subject else []
    out, closing = "", at
    for entry in rounds or [None]:
        inner = dot if text == "if" else entry
        more, end = _block(parts, at + 1, root, inner, shown=shown and bool(rounds))
        assert end is not None
        out, closing = out + more, end
    if parts[closing][1] == "else":
        more, end = _block(parts, closing + 1, root, dot, shown=shown and not rounds)
        assert end is not None
        out, closing = out + more, end
    return out, closing


def _piped(text: str, root: Values, dot: Any) -> Any:
    value: Any = None
    for number, call in enumerate(text.split(" | ")):
        words = _WORD.findall(call)
        given = [
            _value(term, root, dot)
            for term in (words if number == 0 and words[0].startswith((".", '"')) and len(words) == 1 else words[1:])
        ]
        value = (
            given[0] if number == 0 and len(words) == 1 else _FUNCTIONS[words[0]](*given, *([value] if number else []))
        )
    return value


def _value(text: str, root: Values, dot: Any) -> Any:
    if text.startswith('"'):
        return text[1:-1]
    if text.isdecimal():
        return int(text)
    if text == ".":
        return dot
    result: Any = root
    for name in text.removeprefix(".").split("."):
        result = result[name[0].lower() + name[1:] if name == "AppVersion" else name]
    return result


def _indented(count: int, text: str) -> str:
    return "\n".join(" " * count + line for line in text.split("\n"))


_FUNCTIONS: dict[str, Any] = {
    "toYaml": lambda value: yaml.safe_dump(value, sort_keys=True).removesuffix("...\n").rstrip("\n"),
    "nindent": lambda count, text: "\n" + _indented(count, text),
    "indent": _indented,
    "default": lambda fallback, value: value or fallback,
    "quote": lambda value: json.dumps(str(value)),
    "toJson": json.dumps,
    "dir": posixpath.dirname,
    "eq": lambda entry, other: entry == other,
    ".Files.Get": lambda name: (CHART / name).read_text(),
}
