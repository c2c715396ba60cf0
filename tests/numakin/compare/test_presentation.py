"""What is concluded from rounds, as lines and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from numakin.compare.arms import AGAIN, ON_ONE_MACHINE
from numakin.compare.presentation import as_json, conclusions, number, table
from numakin.compare.rounds import result
from numakin.compare.workloads import Figures
from tests.numakin.compare.made_up import made_up


def test_programs_receive_everything():
    answer = json.loads(json.dumps(as_json(result(made_up(110.0), ON_ONE_MACHINE), {"workload": "x"})))
    assert answer["conclusive"]
    assert answer["compared"][0]["ratio"]["value"] > 1.1
    assert "together is better" in answer["conclusions"][0]


NOTHING = "nothing can be concluded of {}: unpinned again differs from unpinned"


def test_noise_between_the_same_is_never_taken_for_an_effect():
    outcome = result(made_up(130.0, 1.2), ON_ONE_MACHINE)
    first, second, _ = conclusions(outcome)
    assert first.startswith(NOTHING.format("throughput"))
    assert second.startswith(NOTHING.format("p99 latency"))
    assert not outcome.conclusive


@pytest.mark.parametrize(("again", "late_again", "noisy", "quiet"), [
    (130.0, 1.0, "throughput", "p99 latency"), (110.0, 1.2, "p99 latency", "throughput"),
])  # fmt: skip
def test_each_figure_has_a_control_of_its_own(again, late_again, noisy, quiet):
    outcome = result(made_up(again, late_again), ON_ONE_MACHINE)
    lines = list(conclusions(outcome))
    assert [line for line in lines if noisy in line] == [
        line for line in lines if line.startswith(NOTHING.format(noisy))
    ]
    assert sum(line.startswith(f"{quiet}, together / ") and "is better" in line for line in lines) == 2
    assert outcome.conclusive


def test_it_says_how_sure_all_intervals_are_at_once():
    *_, last = conclusions(result(made_up(110.0), ON_ONE_MACHINE))
    assert last == "all 4 intervals hold the true ratios with 95%; 8 pairs, exact signed ranks"
    *_, last = conclusions(result(made_up(110.0)[:7], ON_ONE_MACHINE))
    assert last.startswith("each interval holds the true ratio with 95%, all 4 take 8 rounds; 7 pairs")


@pytest.mark.parametrize(("millis", "title"), [(True, "P99 MS"), (False, "P99")])
def test_a_unit_of_your_own_is_not_called_milliseconds(millis, title):
    made = table(result(made_up(110.0), ON_ONE_MACHINE), millis=millis)
    assert [column.header for column in made.columns] == ["WAY", "THROUGHPUT/S", title]


def test_without_the_control_s_figure_nothing_is_concluded_of_it():
    rounds = made_up(110.0)
    rounds[3][AGAIN] = replace(rounds[3][AGAIN], figures=Figures(110.0, None))
    outcome = result(rounds, ON_ONE_MACHINE)
    said = [line for line in conclusions(outcome) if "p99 latency" in line]
    assert said == [
        "nothing can be concluded of p99 latency: unpinned again, the control, did not have it in every run"
    ]
    late = replace(outcome, compared=tuple(each for each in outcome.compared if each.figure == "latency"))
    assert late.compared[0].ratio is not None
    assert late.compared[0].ratio.differs
    assert not late.conclusive


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (123456.7, "123,457"), (110.0, "110.00"), (0.45, "0.45"), (0.0042, "0.0042"), (0.0, "0")],
)
def test_a_figure_of_any_size_can_be_read(value, shown):
    assert number(value) == shown


def test_too_few_rounds_conclude_nothing():
    (line,) = conclusions(result(made_up(110.0)[:5], ON_ONE_MACHINE))
    assert "too few" in line
