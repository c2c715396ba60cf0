"""What is concluded from rounds, as lines and as JSON."""

from __future__ import annotations

import json

import pytest

from numakin.compare.arms import ON_ONE_MACHINE
from numakin.compare.presentation import as_json, conclusions, table
from numakin.compare.rounds import result
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


def test_too_few_rounds_conclude_nothing():
    (line,) = conclusions(result(made_up(110.0)[:5], ON_ONE_MACHINE))
    assert "too few" in line
