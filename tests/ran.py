"""What ran with what, in one run of the tests: a plugin of pytest that writes build/ran.json.

A test's report says by a property what it ran on, such as "containerd 2.1.9" (tests/e2e/conftest.py). `make reference`
takes the file over into docs/compatibility.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

RAN_ON = "ran on"
"""The property's name."""

FILE = Path(__file__).parents[1] / "build" / "ran.json"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ran(FILE), "ran")


class Ran:
    """In the process that all reports come to. Nothing is written where no test ran on anything."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, on in report.user_properties:
            if name == RAN_ON and (report.when == "call" or report.failed):
                tests = self._outcomes.setdefault(str(on), {})
                tests[report.nodeid] = "failed" if report.failed else tests.get(report.nodeid, report.outcome)

    def pytest_sessionfinish(self) -> None:
        if self._outcomes:
            self._file.parent.mkdir(exist_ok=True)
            ran = {on: _by_file(tests.items()) for on, tests in sorted(self._outcomes.items())}
            date = datetime.now(UTC).date().isoformat()
            self._file.write_text(json.dumps({"date": date, "ran": ran}, indent=1) + "\n")


def _by_file(outcomes: Iterable[tuple[str, str]]) -> Mapping[str, Mapping[str, int]]:
    """How many tests of each file passed, failed, were skipped."""
    counted: dict[str, Counter[str]] = {}
    for test, outcome in outcomes:
        counted.setdefault(test.partition("::")[0], Counter())[outcome] += 1
    return {file: dict(sorted(counts.items())) for file, counts in sorted(counted.items())}
