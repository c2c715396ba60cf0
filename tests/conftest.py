"""A skip must not pass for a success: tests that could not run here are named in the last lines of every run, and one
whose reason is an exception of Python's has failed.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest import runner
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from numakin.process import ports
from tests import examples, forked, groups, trees

pytest_plugins = ("tests.pace", "tests.again", "tests.ran")

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Half of the time of what tests start would go into compiling it anew. Nothing is written beside the sources.
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix, "bytecode")))
    sys.dont_write_bytecode = False

for size in ("COLUMNS", "LINES"):
    os.environ.pop(size, None)
"""Of no terminal that is there: readline, which pytest imports, leaves them to the processes that pytest starts."""

settings.register_profile("any machine", deadline=None)
settings.register_profile(examples.FEWER, deadline=None, max_examples=examples.ALL // 4)
settings.load_profile("any machine")
"""No test fails for how long it takes: the machine may be busy."""

runner._update_current_test_var = lambda item, when: None
"""pytest tells in the environment which test runs, and changes it at each step: a thread that copies it meanwhile fails."""

OURS = (sys.prefix, str(Path(trees.__file__).parents[1]))
"""Folders: the virtual environment and the checkout."""

OUR_FAULT = re.compile(
    r"Traceback|\b(Import|ModuleNotFound|Attribute|Name|Type|Syntax)Error\b|the loader failed|failed to execute"
    rf"|(?:{'|'.join(map(re.escape, OURS))})/\S*: No such file"
)
"""In the reason of a skip: nothing that a machine lacks, but code or a set-up of ours that is broken."""


def pytest_configure() -> None:
    """Each of several processes, with those that it starts, draws its ports from a part of its own."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        each = (ports.LAST + 1 - ports.FIRST) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first = ports.FIRST + each * int(worker.removeprefix("gw"))
        os.environ[ports.PART] = f"{first}-{first + each - 1}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: 7,000 tests and their modules, which the collector would look at again and again
    meanwhile, with each test, and a last time at the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class _SideBySide(LoadScopeScheduling):
    """Several processes: each group of tests is one's."""

    def _split_scope(self, nodeid: str) -> str:
        return groups.group(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """A process needs to know one test more than it runs. xdist gives it the next group two tests before the end of its
        own, where that waits for them while another process has nothing to do.
        """
        if not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _SideBySide:
    return _SideBySide(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: groups.rank(item.nodeid))
    if slow := [item.nodeid for item in items if _thorough(item) and not item.get_closest_marker("thorough")]:
        raise pytest.UsageError(f"starts what is too slow for `make test`, and is not marked as thorough: {slow}")


def _thorough(item: pytest.Item) -> bool:
    """Whether it boots an emulated machine, or starts a control plane besides the one that many share."""
    fixtures = getattr(item, "fixturenames", ())
    return "numavm" in fixtures or ("kubernetes" in fixtures and "ten_nodes" not in fixtures)


def pytest_sessionfinish() -> None:
    """In each process: those of several end without Python's own way of ending."""
    trees.remove()
    forked.end()


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
