"""Locked dependencies: every requirement is pinned, every pin has the hashes of its files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "tools" / "setup" / "locked").glob("*.txt"))
PIN = re.compile(r"^[a-z0-9._-]+==\S+( ; [^\\]+)? \\$")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """What the check reads, to be changed."""
    for name in ("pyproject.toml", "tools/setup/lock"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tools" / "setup" / "locked", tmp_path / "tools" / "setup" / "locked")
    return tmp_path


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "tools" / "setup" / "lock", "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_pin_has_hashes_and_no_address_is_named(file: Path) -> None:
    lines = file.read_text().splitlines()
    pins = [at for at, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert pins
    for at in pins:
        assert PIN.match(lines[at]), lines[at]
        assert lines[at + 1].startswith("    --hash=sha256:"), lines[at]
    assert "://" not in file.read_text()


def test_what_is_locked_fulfils_what_is_required(copied: Path) -> None:
    done = checked(copied)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('"flask>=3.1"', '"flask>=99"', "of flask>=99: make lock"),
        ('"rich>=15.0",', '"rich>=15.0", "left-out>=1",', "has no version of left-out>=1: make lock"),
    ],
    ids=["a newer version", "another package"],
)
def test_a_requirement_without_a_pin_is_named(copied: Path, before: str, after: str, complaint: str) -> None:
    project = copied / "pyproject.toml"
    assert before in project.read_text()
    project.write_text(project.read_text().replace(before, after, 1))
    done = checked(copied)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_images_and_tools_install_nothing_without_a_hash() -> None:
    texts = [path.read_text() for path in (ROOT / "manifests" / "images").glob("*/Dockerfile")]
    texts.append((ROOT / "tools" / "setup" / "tools").read_text())
    for text in texts:
        for line in re.findall(r"pip\"? install [^\n;&]*", text):
            assert "--require-hashes" in line or "--no-deps" in line, line
