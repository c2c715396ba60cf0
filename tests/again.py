"""What failed in a run of all tests is run once more, alone, and is named whatever comes of it.

    python -m pytest --cache-clear ... || python -m tests.again $?

A test that fails again has failed. One that passes alone depends on what runs beside it: a defect of the test or of what
it tests. Where CI is set, it fails the run as well, unless this machine was too busy with others' work to tell.

As a plugin of pytest it keeps how busy the machine was when a test failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pace

CACHE = Path(".pytest_cache/v/cache")
FAILED = CACHE / "lastfailed"
LOADS = CACHE / "load-by-failed"

MOST = 10
"""Files: what their tests share fails for all of them. Where more failed, it is no matter of what ran beside them."""

TOO_BUSY = 8.0
"""Load average of the last minute, by CPU, when a test failed: above, that it passes alone proves nothing against it. A run
of all tests makes 3 by itself, and a compiler beside it 2 more.
"""

_loads: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _loads[report.nodeid] = max(pace.load(), _loads.get(report.nodeid, 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):
        cache.set(f"cache/{LOADS.name}", _loads)


def main(status: int) -> int:
    """The status of the run, or that of the second one where some tests failed."""
    if status != pytest.ExitCode.TESTS_FAILED:
        return status
    failed, loads = sorted(_read(FAILED)), _read(LOADS)
    files = {name.partition("::")[0] for name in failed}
    if len(files) > MOST:
        print(f"{len(failed)} tests of {len(files)} files failed: those of more than {MOST} are not run once more")
        return status
    second = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    passed = (
        set() if second not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else {*failed} - _read(FAILED).keys()
    )
    for name in failed:
        print(f"FAILED BESIDE OTHERS{_alone(loads.get(name, 0.0)) if name in passed else ''}: {name}")
    held_against = [name for name in passed if loads.get(name, 0.0) <= TOO_BUSY]
    return int(pytest.ExitCode.TESTS_FAILED) if second == 0 and held_against and os.environ.get("CI") else second


def _alone(load: float) -> str:
    told = f", PASSED ALONE (load by CPU {load:.1f}"
    return f"{told}, over {TOO_BUSY:g}: the machine was too busy)" if load > TOO_BUSY else f"{told})"


def _read(path: Path) -> dict[str, float]:
    """By test; empty where there was none."""
    result: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    return result


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
