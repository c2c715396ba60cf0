"""The files of the page are in the repository as they are shipped, so that nobody needs Node.js to install numakin."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES, ASSETS = ROOT / "web", ROOT / "extender" / "web" / "assets"


def test_they_are_built_from_the_sources_that_are_here() -> None:
    """`make page` builds them anew."""
    files = [SOURCES / "package-lock.json", SOURCES / "build.mjs", *(SOURCES / "src").rglob("*")]
    names = sorted(str(file.relative_to(SOURCES)) for file in files if file.is_file())
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    assert (ASSETS / "sources.sha256").read_text().strip() == digest.hexdigest(), "make page"


@pytest.mark.skipif(not (SOURCES / "node_modules").is_dir() or not shutil.which("node"), reason="make page was not run")
def test_the_sources_build_to_just_these(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "web", symlinks=True)
    subprocess.run(["node", "build.mjs"], cwd=tmp_path / "web", check=True)
    built = tmp_path / "extender" / "web" / "assets"
    assert {file.name for file in built.iterdir()} == {file.name for file in ASSETS.iterdir()}
    for file in built.iterdir():
        assert file.read_bytes() == (ASSETS / file.name).read_bytes(), file.name


def test_the_lock_names_no_download_address() -> None:
    assert "resolved" not in (SOURCES / "package-lock.json").read_text()
