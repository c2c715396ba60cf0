"""What is no release: nothing is written then, and what is wrong is said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.release.checkout import ROOT, VERSION, Checkout
from tools.release import agreement


def test_the_version_is_the_same_wherever_it_stands_and_the_changelog_tells_of_it() -> None:
    assert agreement.disagreements(ROOT) == []
    assert agreement.notes(ROOT)


@pytest.fixture
def changed(checkout: Checkout, tmp_path: Path) -> Checkout:
    """A copy that a test may change."""
    subprocess.run(["git", "clone", "--quiet", checkout.folder, tmp_path / "changed"], check=True)
    return Checkout(tmp_path / "changed")


def refused(checkout: Checkout, *options: str, path: str = os.environ["PATH"]) -> str:
    run = checkout.cut(*options, path=path)
    assert (run.returncode, run.stdout) == (1, "")
    assert not checkout.released.exists()
    return run.stderr


def test_there_is_none_of_what_is_not_committed(changed: Checkout) -> None:
    (changed.folder / "new").write_text("x")
    assert "not committed" in refused(changed, "--no-images")


@pytest.mark.parametrize("name", [
    "numakin/process/version.py", "charts/numakin/Chart.yaml", "manifests/base/kustomization.yaml",
    "manifests/images/compare/Dockerfile", "docs/quick-start.md",
])  # fmt: skip
def test_there_is_none_where_one_place_has_another_version(changed: Checkout, name: str) -> None:
    changed.change(name, VERSION, "9.9.9")
    changed.commit()
    assert f"{name}: 9.9.9, where pyproject.toml has {VERSION}" in refused(changed, "--no-images")


def test_there_is_none_that_the_changelog_does_not_tell_of(changed: Checkout) -> None:
    changed.change("CHANGELOG.md", f"## {VERSION} - ", "## soon - ")
    changed.commit()
    assert f"no section `## {VERSION} - YYYY-MM-DD`" in refused(changed, "--no-images")


def test_there_is_none_without_the_images_of_this_commit_unless_that_is_said(changed: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "bash", "dirname", "mkdir", "python3"):
        (folder / name).symlink_to(str(shutil.which(name)))
    assert "numakin-enforcer:0.1.0 is not there: make images" in refused(changed, path=str(folder))
    told = json.dumps({"OCIv1": {"config": {"Labels": {"org.opencontainers.image.revision": "older"}}}})
    (folder / "buildah").write_text(f"#!{shutil.which('sh')}\necho '{told}'\n")
    (folder / "buildah").chmod(0o755)
    assert "numakin-enforcer:0.1.0 of buildah is of older, not of" in refused(changed, path=str(folder))
