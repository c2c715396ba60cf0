"""A skip must not pass for a success: tests that could not run here are named in the last lines of every run, and one
whose reason is an exception of Python's has failed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
"""No test fails for how long it takes: the machine may be busy."""

OUR_FAULT = re.compile(r"Traceback|\b(Import|ModuleNotFound|Attribute|Name|Type|Syntax)Error\b|the loader failed")
"""In the reason of a skip: nothing that a machine lacks, but code that is broken."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and OUR_FAULT.search(_reason(report)):
        report.outcome, report.longrepr = "failed", f"skipped for a fault that is no machine's: {_reason(report)}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    yield
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reasons[_reason(report)] += 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT RUN HERE: {count} tests: {reason}", yellow=True, bold=True)


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
