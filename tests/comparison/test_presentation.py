"""What is concluded from rounds, as lines and as JSON."""

from __future__ import annotations

import json

from comparison.arms import ON_ONE_MACHINE
from comparison.presentation import as_json, conclusions
from comparison.rounds import result
from tests.comparison.made_up import made_up


def test_programs_receive_everything():
    answer = json.loads(json.dumps(as_json(result(made_up(110.0), ON_ONE_MACHINE), {"workload": "x"})))
    assert answer["conclusive"]
    assert answer["compared"][0]["ratio"]["value"] > 1.1
    assert "together is better" in answer["conclusions"][0]


def test_noise_between_the_same_is_never_taken_for_an_effect():
    (line,) = conclusions(result(made_up(130.0), ON_ONE_MACHINE))
    assert line.startswith("nothing can be concluded: unpinned again differs from unpinned")
    assert not result(made_up(130.0), ON_ONE_MACHINE).conclusive


def test_too_few_rounds_conclude_nothing():
    (line,) = conclusions(result(made_up(110.0)[:5], ON_ONE_MACHINE))
    assert "too few" in line
