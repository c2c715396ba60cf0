"""Images are taken out of a real builder's store, where they are of this commit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.release import images

pytestmark = pytest.mark.skipif(
    shutil.which("buildah") is None or os.geteuid() != 0, reason="needs buildah, and root for its store"
)

Build = Callable[[str, str], None]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Makes an empty image of a name and a commit, in a store of its own that `buildah` then means."""
    store = f"{shutil.which('buildah')} --root {tmp_path}/store --runroot {tmp_path}/run --storage-driver vfs"
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "buildah").write_text(f'#!{shutil.which("sh")}\nexec {store} "$@"\n')
    (folder / "buildah").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def made(name: str, commit: str) -> None:
        def buildah(*arguments: str) -> str:
            return subprocess.run(["buildah", *arguments], check=True, capture_output=True, text=True).stdout.strip()

        container = buildah("from", "scratch")
        buildah("config", "--label", f"{images.REVISION}={commit}", container)
        buildah("commit", "--quiet", "--rm", container, name)

    return made


def test_both_are_taken_out_as_oci_archives(build: Build, tmp_path: Path) -> None:
    for name in images.NAMES:
        build(f"numakin-{name}:v1", "abc")
    files = images.taken_out("v1", "abc", tmp_path)
    assert [file.name for file in files] == ["numakin-enforcer-v1.tar", "numakin-extender-v1.tar"]
    for file in files:
        with tarfile.open(file) as archive:
            index = json.loads(archive.extractfile("index.json").read())
        assert len(index["manifests"]) == 1


@pytest.mark.parametrize(("name", "commit", "why"), [
    ("numakin-enforcer:v1", "older", "of buildah is of older, not of abc: make images"),
    ("other:v1", "abc", "numakin-enforcer:v1 is not there: make images, or leave the images out by --no-images"),
])  # fmt: skip
def test_what_is_not_of_this_commit_is_not_taken(
    build: Build, tmp_path: Path, name: str, commit: str, why: str
) -> None:
    build(name, commit)
    with pytest.raises(images.NoImage, match=why):
        images.taken_out("v1", "abc", tmp_path)
