"""What failed in a run of all tests is run once more, alone, in the order of its file, and is named, with what was seen
first, whatever comes of it.

    python -m pytest --cache-clear ... || python -m tests.again $?

A test that fails again has failed. One that passes alone depends on what runs beside it: a defect of the test or of what
it tests. Where CI is set, it fails the run as well, unless this machine was too busy with others' work to tell.

As a plugin of pytest it keeps why a test failed, and how busy the machine was then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import pace

CACHE = Path(".pytest_cache/v/cache")
FAILED = CACHE / "lastfailed"
SEEN = CACHE / "seen-of-failed"

MOST = 10
"""Files: what their tests share fails for all of them. Where more failed, it is no matter of what ran beside them."""

TOO_BUSY = 6.0
"""Load average of the last minute, by CPU, when a test failed: above, that it passes alone proves nothing against it. A run
of all tests makes 3 by itself, a compiler beside it 2 more, and CPUs that are half as fast twice of that.
"""

MOST_WHY = 300
"""Characters of why a test failed."""

MOST_NAMED = 10
"""Tests of one file that failed for the same reason; pytest's own summary has them all."""


class _Seen(NamedTuple):
    """Of a test that failed: the machine's load by CPU, and why."""

    load: float
    why: str


_seen: dict[str, _Seen] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        before = _seen.get(report.nodeid, _Seen(0.0, ""))
        _seen[report.nodeid] = _Seen(max(pace.load(), before.load), before.why or _why(report))


def _why(report: pytest.TestReport) -> str:
    """The first line of the exception that ended it, and which line of a test's or the product's was at work then."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return f"{lines[0][:MOST_WHY]}{_where(report)}" if lines else ""


def _where(report: pytest.TestReport) -> str:
    """Of the innermost frame whose file is in the folder of the run; empty where there is none."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
    places = [place for entry in entries if (place := getattr(entry, "reprfileloc", None))]
    ours = [place for place in places if not Path(place.path).is_absolute() and Path(place.path).parts[0] != ".venv"]
    return f" ({ours[-1].path}:{ours[-1].lineno})" if ours else ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):
        cache.set(f"cache/{SEEN.name}", _seen)


def main(status: int) -> int:
    """The status of the run, or that of the second one where some tests failed: what else fails a run, as a file that
    the process which leads it left open, is of no test.
    """
    failed = sorted(_read(FAILED)) if status == pytest.ExitCode.TESTS_FAILED else []
    if not failed:
        return status
    files = {name.partition("::")[0] for name in failed}
    if len(files) > MOST:
        print(f"{len(failed)} tests of {len(files)} files failed: those of more than {MOST} are not run once more")
        return status
    read = _read(SEEN)
    seen = {name: _Seen(*read.get(name, (0.0, ""))) for name in failed}
    environment = {name: value for name, value in os.environ.items() if name != pace.UNTIL}
    once_more = [sys.executable, "-m", "pytest", "--last-failed", *sorted(files)]
    second = subprocess.run(once_more, check=False, env=environment).returncode
    alone = (
        set() if second not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else {*failed} - _read(FAILED).keys()
    )
    causes: defaultdict[tuple[bool, str, str], list[str]] = defaultdict(list)
    for name in failed:
        causes[name in alone, name.partition("::")[0], seen[name].why].append(name)
    for (passed, file, why), tests in causes.items():
        load = max(seen[name].load for name in tests)
        print("\n".join(tests[:MOST_NAMED]))
        which = tests[0] if len(tests) == 1 else f"{len(tests)} tests of {file}"
        print(f"FAILED BESIDE OTHERS{_alone(load) if passed else ''}: {which}: {why}")
    held_against = [name for name in alone if seen[name].load <= TOO_BUSY]
    return int(pytest.ExitCode.TESTS_FAILED) if second == 0 and held_against and os.environ.get("CI") else second


def _alone(load: float) -> str:
    told = f", PASSED ALONE (load by CPU {load:.1f}"
    return f"{told}, over {TOO_BUSY:g}: the machine was too busy)" if load > TOO_BUSY else f"{told})"


def _read(path: Path) -> dict[str, Any]:
    """By test; empty where there was none."""
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return result


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
