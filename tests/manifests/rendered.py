"""Manifests as kubectl renders them, and as they stand in the files."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.standins.patience import PATIENCE_S

MANIFESTS = Path(__file__).parents[2] / "manifests"
BEFORE_1_30 = "overlays/before-1.30"
OVERLAYS = tuple(f"overlays/{entry.name}" for entry in sorted((MANIFESTS / "overlays").iterdir()))
WHOLE = ("base", *OVERLAYS)
"""What can be applied."""


def parsed(text: str) -> list[dict[str, Any]]:
    """Those of a YAML stream, by libyaml: in Python alone all manifests take a second."""
    return [entry for entry in yaml.load_all(text, Loader=yaml.CSafeLoader) if entry]


def files(folder: str = "base") -> list[dict[str, Any]]:
    """Every object in a folder's files, as written; the caller's own."""
    result: list[dict[str, Any]] = json.loads(_as_json(folder))
    return result


@functools.cache
def _as_json(folder: str) -> str:
    """A fortieth of the time of YAML, for those who ask in each test."""
    paths = sorted((MANIFESTS / folder).glob("*.yaml"))
    return json.dumps([
        each for path in paths if path.name != "kustomization.yaml" for each in parsed(path.read_text())
    ])  # fmt: skip


@functools.cache
def rendered(overlay: str) -> list[dict[str, Any]]:
    """The objects that `kubectl apply -k` would send; skips where no kustomize is to be had."""
    answer = subprocess.run(
        [*_kustomize(), str(MANIFESTS / overlay)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return parsed(answer.stdout)


def one(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (result,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return result


@functools.cache
def _kustomize() -> list[str]:
    """The command; skips where there is none."""
    done = subprocess.run(
        [MANIFESTS.parent / "tools" / "setup" / "kustomize", "--there"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode:
        pytest.skip(done.stderr.strip())
    return done.stdout.split()
