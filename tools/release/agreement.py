"""The version, wherever it stands: one number, or it is no release."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

SEMANTIC = r"(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)"

PLACES = (
    ("numakin/process/version.py", r'^VERSION = "(.*)"$'),
    ("charts/numakin/Chart.yaml", r"^version: (.*)$"),
    ("charts/numakin/Chart.yaml", r"^appVersion: (.*)$"),
    ("manifests/base/kustomization.yaml", r"newTag: (.*)$"),
    ("manifests/base/kustomization.yaml", rf"registry\.example/numakin-\w+:{SEMANTIC}"),
    ("manifests/images/enforcer/Dockerfile", rf"numakin-\w+:{SEMANTIC}"),
    ("manifests/images/extender/Dockerfile", rf"numakin-\w+:{SEMANTIC}"),
    ("manifests/images/compare/Dockerfile", rf"numakin-\w+:{SEMANTIC}"),
    ("numakin/kubectl/commands/compare.py", rf"numakin-compare:{SEMANTIC}"),
    ("docs/quick-start.md", rf"newTag: {SEMANTIC}"),
    ("docs/compare.md", rf"numakin-compare:{SEMANTIC}"),
    ("docs/operations.md", rf"(?:newTag: |ref=v|numakin-\w+:){SEMANTIC}"),
)
"""Files, and what finds the version in them: each at least once."""


def version(root: Path) -> str:
    """As pyproject.toml has it."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def disagreements(root: Path) -> list[str]:
    """A line for each place that has another version than pyproject.toml, or none."""
    wanted = version(root)
    found = []
    for name, pattern in PLACES:
        versions = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
        if not versions:
            found.append(f"{name}: no version where it should be ({pattern})")
        found += [f"{name}: {each}, where pyproject.toml has {wanted}" for each in versions if each != wanted]
    return found


def notes(root: Path) -> str:
    """What CHANGELOG.md says of this version. ValueError where it has no dated section of it."""
    wanted = version(root)
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(
        rf"^## {re.escape(wanted)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md: no section `## {wanted} - YYYY-MM-DD` with what is in it")
    return section[1].strip() + "\n"
