"""A skip says what the machine lacks. One that tells of broken code has failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
CONFTEST = (ROOT / "tests" / "conftest.py").read_text()


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("needs root", "1 skipped"),
        ("the kernel refuses: Operation not permitted", "1 skipped"),
        ("the kernel refuses: Traceback (most recent call last)", "1 failed"),
        ("no BPF here: ImportError: cannot import name 'Runtime'", "1 failed"),
        ("the kernel refuses: the loader failed: killed", "1 failed"),
        ("no BPF here: setpriv: failed to execute /x/.venv/bin/python: No such file or directory", "1 failed"),
        (f"no cluster here: sh: {sys.prefix}/bin/python: No such file or directory", "1 failed"),
        ("the kernel refuses: /sys/kernel/btf/vmlinux: No such file or directory", "1 skipped"),
    ],
)
def test_a_skip_for_broken_code_is_a_failure(tmp_path: Path, reason: str, outcome: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(f"import pytest\n\ndef test_it():\n    pytest.skip({reason!r})\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=PATIENCE_S, check=False
    )
    assert outcome in run.stdout
