"""`make test` is for every change: what boots an emulated machine or starts a cluster of its own is `make test-all`'s."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
CONFTEST = (ROOT / "tests" / "conftest.py").read_text()

FIXTURES = """
import pytest

@pytest.fixture(scope="session")
def numavm(): ...

@pytest.fixture(scope="session")
def kubernetes(): ...

@pytest.fixture(scope="session")
def ten_nodes(kubernetes): ...
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough: later\n    numavm: emulated\n")
    (folder / "test_it.py").write_text(FIXTURES + text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not thorough", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize("fixture", ["numavm", "kubernetes"])
def test_what_is_too_slow_for_it_must_be_marked(tmp_path: Path, fixture: str) -> None:
    done = run(tmp_path, f"def test_it({fixture}): ...\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "is not marked as thorough: ['test_it.py::test_it']" in done.stderr


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("@pytest.mark.thorough\ndef test_it(numavm): ...\n", "1 deselected"),
        ("def test_it(ten_nodes): ...\n", "1 passed"),
    ],
    ids=["what is marked", "the cluster that many share"],
)
def test_what_is_marked_is_left_to_the_other_tier(tmp_path: Path, text: str, outcome: str) -> None:
    assert outcome in run(tmp_path, text).stdout
