"""A run of the tests leaves what ran with what, and the page of compatibility is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ran import RAN_ON, Ran
from tools.reference import compatibility

PAGE = "# Compatibility\n\n<!-- what ran: made by `make reference` -->\nold\n<!-- end -->\n\nmore\n"


def report(test: str, when: str, outcome: str, *ran_on: str) -> pytest.TestReport:
    properties = [(RAN_ON, on) for on in ran_on]
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when, user_properties=properties)


def ran(file: Path, *reports: pytest.TestReport) -> dict[str, dict[str, dict[str, int]]]:
    plugin = Ran(file)
    for each in reports:
        plugin.pytest_runtest_logreport(each)
    plugin.pytest_sessionfinish()
    return json.loads(file.read_text())["ran"] if file.exists() else {}


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
        "CRI-O 1.37.0": {"tests/e2e/test_a.py": {"failed": 1, "passed": 1}},
        "containerd 2.1.9": {"tests/e2e/test_b.py": {"skipped": 1}},
    }


def test_a_run_that_used_no_runtime_leaves_what_was_there(tmp_path: Path) -> None:
    assert ran(tmp_path / "ran.json", report("tests/x.py::test_4", "call", "passed")) == {}


def test_a_later_run_replaces_its_own_files_alone_and_the_page_says_when_each_ran(tmp_path: Path) -> None:
    last, kept = tmp_path / "last.json", tmp_path / "kept.json"
    for date, files in (
        ("2026-11-01", {"tests/e2e/test_a.py": {"passed": 3}, "tests/e2e/test_b.py": {"failed": 1}}),
        ("2026-11-02", {"tests/e2e/test_b.py": {"passed": 1, "skipped": 2}}),
    ):
        last.write_text(json.dumps({"date": date, "ran": {"CRI-O 1.37.0": files}}))
        compatibility.take_over(last, kept)
    page = compatibility.page(PAGE, kept)
    assert "| CRI-O 1.37.0 | `tests/e2e`: b | 1 passed, 2 skipped | 2026-11-02 |" in page
    assert "| CRI-O 1.37.0 | `tests/e2e`: a | 3 passed | 2026-11-01 |" in page
    assert "old" not in page
    assert page.endswith("<!-- end -->\n\nmore\n")
    assert compatibility.page(page, kept) == page
