"""A run of the tests leaves what ran with what, and the page of compatibility is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.cluster.binaries import Binaries
from tests.ran import RAN_ON, Ran, ran_on, read
from tools.reference import compatibility

PAGE = "# Compatibility\n\n<!-- what ran: made by `make reference` -->\nold\n<!-- end -->\n\nmore\n"


def report(test: str, when: str, outcome: str, *ran_on: str) -> pytest.TestReport:
    properties = [(RAN_ON, on) for on in ran_on]
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when, user_properties=properties)


def ran(file: Path, *reports: pytest.TestReport) -> dict[str, dict[str, str]]:
    """By what it ran on, each test's outcome."""
    plugin = Ran(file)
    for each in reports:
        plugin.pytest_runtest_logreport(each)
    plugin.pytest_sessionfinish()
    return {on: {test: outcome for test, (outcome, _) in tests.items()} for on, tests in read(file).items()}


RELEASE = Binaries(Path("/nowhere"), 36)


def test_a_test_ran_on_the_runtime_and_the_kubernetes_of_its_fixtures() -> None:
    assert ran_on([object(), RELEASE, "node"]) == "Kubernetes 1.36"
    assert ran_on(["shop", Path("/tmp")]) == ""


def test_each_test_counts_once_by_its_worst_part_under_what_it_ran_on(tmp_path: Path) -> None:
    passed = [
        report("tests/e2e/test_a.py::test_1", when, "passed", "CRI-O 1.37.0") for when in ("setup", "call", "teardown")
    ]
    broken = [
        report("tests/e2e/test_a.py::test_2", when, outcome, "CRI-O 1.37.0")
        for when, outcome in (("call", "passed"), ("teardown", "failed"))
    ]
    other = [
        report("tests/e2e/test_b.py::test_3", "call", "skipped", "containerd 2.1.9"),
        report("tests/x.py::test_4", "call", "passed"),
    ]
    assert ran(tmp_path / "ran.json", *passed, *broken, *other) == {
        "CRI-O 1.37.0": {"tests/e2e/test_a.py::test_1": "passed", "tests/e2e/test_a.py::test_2": "failed"},
        "containerd 2.1.9": {"tests/e2e/test_b.py::test_3": "skipped"},
    }


def test_what_is_run_once_more_replaces_its_own_outcome_alone(tmp_path: Path) -> None:
    first = [
        report(f"tests/e2e/test_a.py::test_{at}", "call", outcome, "CRI-O 1.37.0")
        for at, outcome in ((1, "passed"), (2, "failed"))
    ]
    ran(tmp_path / "ran.json", *first)
    again = report("tests/e2e/test_a.py::test_2", "call", "passed", "CRI-O 1.37.0")
    assert [*ran(tmp_path / "ran.json", again)["CRI-O 1.37.0"].values()] == ["passed", "passed"]


def test_a_run_that_used_no_runtime_leaves_what_was_there(tmp_path: Path) -> None:
    assert ran(tmp_path / "ran.json", report("tests/x.py::test_4", "call", "passed")) == {}


def test_a_later_run_replaces_its_own_files_alone_and_the_page_says_when_each_ran(tmp_path: Path) -> None:
    last, kept = tmp_path / "last.json", tmp_path / "kept.json"
    for date, outcomes in (
        ("2026-11-01", {"a.py::1": "passed", "a.py::2": "passed", "b.py::1": "failed"}),
        ("2026-11-02", {"b.py::1": "passed", "b.py::2": "skipped", "b.py::3": "skipped"}),
    ):
        tests = {f"tests/e2e/test_{test}": (outcome, date) for test, outcome in outcomes.items()}
        last.write_text(json.dumps({"CRI-O 1.37.0": tests}))
        compatibility.take_over(last, kept)
    page = compatibility.page(PAGE, kept)
    assert "| CRI-O 1.37.0 | `tests/e2e`: b | 1 passed, 2 skipped | 2026-11-02 |" in page
    assert "| CRI-O 1.37.0 | `tests/e2e`: a | 2 passed | 2026-11-01 |" in page
    assert "old" not in page
    assert page.endswith("<!-- end -->\n\nmore\n")
    assert compatibility.page(page, kept) == page
