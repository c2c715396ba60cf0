"""A skip says what the machine lacks. One that tells of broken code has failed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
CONFTEST = (ROOT / "tests" / "conftest.py").read_text()

OUTCOMES = {
    "needs root": "SKIPPED",
    "the kernel refuses: Operation not permitted": "SKIPPED",
    "the kernel refuses: Traceback (most recent call last)": "FAILED",
    "no BPF here: ImportError: cannot import name 'Runtime'": "FAILED",
    "the kernel refuses: the loader failed: killed": "FAILED",
    "no BPF here: setpriv: failed to execute /x/.venv/bin/python: No such file or directory": "FAILED",
    f"no cluster here: sh: {sys.prefix}/bin/python: No such file or directory": "FAILED",
    "the kernel refuses: /sys/kernel/btf/vmlinux: No such file or directory": "SKIPPED",
}
"""By the reason of the skip."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What one run says of each, in this order."""
    folder = tmp_path_factory.mktemp("skips")
    (folder / "conftest.py").write_text(CONFTEST)
    tests = (f"def test_{at}():\n    pytest.skip({reason!r})\n" for at, reason in enumerate(OUTCOMES))
    (folder / "test_it.py").write_text("\n".join(["import pytest\n", *tests]))
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=PATIENCE_S, check=False
    )
    return re.findall(r"^test_it\.py::test_\d+ (\w+)", run.stdout, re.MULTILINE)


@pytest.mark.parametrize(("at", "outcome"), [*enumerate(OUTCOMES.values())], ids=OUTCOMES)
def test_a_skip_for_broken_code_is_a_failure(told: list[str], at: int, outcome: str) -> None:
    assert told[at] == outcome
