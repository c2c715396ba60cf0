"""The table of `make bench`: what it says of a figure, and that a run goes on where it was."""

from __future__ import annotations

import sys

import pytest

import benchmarks.__main__ as bench
from benchmarks.bench.create import FLOOR, GO, OPTED, under_load
from benchmarks.bench.row import Row, table
from benchmarks.runtime.trial import Result


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        pytest.param([0.5, 0.6, 0.7, 0.8, 0.9], "met", id="below"),
        pytest.param([1.1, 1.2, 1.3], "missed", id="above"),
        pytest.param([0.7, 0.8, 0.9, 1.5, 1.6], "met, by chance", id="median-below-upper-quartile-above"),
        pytest.param([0.5, 1.1, 1.2, 1.3, 1.4], "missed", id="one-below"),
        pytest.param([1.0], "met", id="one-at-the-target"),
    ],
)
def test_a_target_is_compared_with_the_median(values, verdict):
    assert Row("a figure", "ms", 1.0, values).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        pytest.param([0.98, 1.0, 1.02], "met", id="none-below"),
        pytest.param([0.9, 1.0, 1.02], "met, by chance", id="lower-quartile-below"),
        pytest.param([0.5, 0.6, 0.7], "missed", id="all-below"),
        pytest.param([0.8, 0.9, 1.2], "missed, by chance", id="upper-quartile-above"),
    ],
)
def test_a_ratio_that_may_not_fall_is_held_to_its_least(values, verdict):
    row = Row("what a pod has", "x without", None, values, 0.98)
    assert row.verdict == verdict
    assert ">= 0.98 x without" in table([row])


def test_the_table_is_markdown_with_equal_columns():
    drawn = table([Row("decide()", "ms", 2.0, [0.2, 0.3, 0.4]), Row("a plan", "s", 1.5, [140.0])]).splitlines()
    assert len({len(line) for line in drawn}) == 1
    assert [cell.strip() for cell in drawn[2].split("|")[1:-1]] == [
        "decide()", "<= 2 ms", "0.3 ms", "0.25 to 0.35", "3", "met",
    ]  # fmt: skip
    assert "140 s" in drawn[3]


def test_a_figure_for_comparison_has_no_target_and_no_verdict():
    drawn = table([Row("the least plugin's", "x its quiet one", None, [7.0])]).splitlines()
    assert [cell.strip() for cell in drawn[2].split("|")[1:-1]] == [
        "the least plugin's", "", "7 x its quiet one", "", "1", "",
    ]  # fmt: skip


def result(*loads: dict[tuple[str, str], list[float]]) -> Result:
    return Result(loads, {}, {})


def test_creates_under_a_load_are_told_beside_the_quiet_ones_and_beside_the_least_plugins_growth():
    quiet = {OPTED: [4.0] * 99 + [10.0], FLOOR: [1.0] * 99 + [2.0], GO: [1.0] * 99 + [4.0]}
    eight = {OPTED: [60.0] * 100, FLOOR: [6.0] * 100, GO: [16.0] * 100}
    rows = under_load([result(quiet, eight)], ["8 at once"])
    assert [row.values for row in rows] == [[6.0], [3.0], [4.0], [2.0]]
    assert [row.most for row in rows] == [2.0, None, None, None]


@pytest.fixture
def measures(monkeypatch, tmp_path) -> list[str]:
    """Two in place of the real ones: the second lacks something, at first. The names of those that were called."""
    called: list[str] = []

    def first(*, quick: bool) -> list[Row]:
        called.append(f"first quick={quick}")
        return [Row("the first", "ms", 1.0, [0.5])]

    def second(*, quick: bool) -> list[Row]:
        called.append(f"second quick={quick}")
        if len(called) < 3:
            raise OSError("no such machine")
        return [Row("the second", "ms", 1.0, [0.5])]

    monkeypatch.setattr(bench, "MEASURES", {"first": first, "second": second})
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    return called


def ran(monkeypatch, capsys, *options: str) -> str:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *options])
    assert bench.main() == 0
    return capsys.readouterr().out


def test_what_failed_is_named_and_measured_again_and_what_is_there_is_not(measures, monkeypatch, capsys):
    shown = ran(monkeypatch, capsys, "--quick")
    assert "the first" in shown
    assert "not measured: second: OSError: no such machine" in shown
    shown = ran(monkeypatch, capsys, "--quick")
    assert "the second" in shown
    assert "not measured" not in shown
    assert measures == ["first quick=True", "second quick=True", "second quick=True"]


def test_all_is_measured_again_where_that_is_asked_for(measures, monkeypatch, capsys):
    for _ in range(2):
        ran(monkeypatch, capsys, "--fresh", "--only", "first")
    assert measures == ["first quick=False", "first quick=False"]
