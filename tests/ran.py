"""What ran with what: a plugin of pytest that keeps each test's last outcome and its day in build/ran.json.

A test's report says by a property what it ran on: the container runtime and the Kubernetes that its fixtures are, such as
"containerd 2.3.4 and Kubernetes 1.36". `make reference` takes the file over into docs/compatibility.md.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.cluster.binaries import Binaries
from tests.e2e.lab.runtimes import Installation

RAN_ON = "ran on"
"""The property's name."""

FILE = Path(__file__).parents[1] / "build" / "ran.json"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ran(FILE), "ran")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if on := ran_on(getattr(item, "funcargs", {}).values()):
        report.user_properties.append((RAN_ON, on))
    return report


def ran_on(fixtures: Iterable[object]) -> str:
    """Of a test that has these; empty where it is neither a runtime's nor a cluster's."""
    given = list(fixtures)
    runtimes = [each.title for each in given if isinstance(each, Installation)]
    releases = [each.title for each in given if isinstance(each, Binaries)]
    return " and ".join([*runtimes[:1], *releases[:1]])


class Ran:
    """In the process that all reports come to. What did not run this time stays as it was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._outcomes: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, on in report.user_properties:
            if name == RAN_ON and (report.when == "call" or report.failed):
                tests = self._outcomes.setdefault(str(on), {})
                tests[report.nodeid] = "failed" if report.failed else tests.get(report.nodeid, report.outcome)

    def pytest_sessionfinish(self) -> None:
        if not self._outcomes:
            return
        self._file.parent.mkdir(exist_ok=True)
        known, date = read(self._file), datetime.now(UTC).date().isoformat()
        for on, tests in self._outcomes.items():
            known.setdefault(on, {}).update({test: (outcome, date) for test, outcome in tests.items()})
        self._file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def read(file: Path) -> dict[str, dict[str, tuple[str, str]]]:
    """What a test ran on -> the test -> its outcome, and the day."""
    known: Mapping[str, Mapping[str, tuple[str, str]]] = json.loads(file.read_text()) if file.exists() else {}
    return {on: {test: (outcome, date) for test, (outcome, date) in tests.items()} for on, tests in known.items()}
