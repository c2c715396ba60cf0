"""What is left of rounds of which one failed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from numakin.compare.arms import ON_ONE_MACHINE
from numakin.compare.presentation import as_json, conclusions
from numakin.compare.rounds import Round, complete, result
from numakin.compare.running import RunFailed
from tests.numakin.compare.made_up import made_up


def failing_after(count: int) -> Iterator[Round]:
    yield from made_up(110.0)[:count]
    raise RunFailed("out of luck")


def test_complete_rounds_before_a_failure_are_concluded_of_and_it_is_said():
    rounds, cut_short = complete(failing_after(6), (RunFailed,))
    outcome = result(rounds, ON_ONE_MACHINE, cut_short)
    lines = list(conclusions(outcome))
    assert lines[0] == "ended early, by a failure after 6 complete rounds: out of luck"
    assert "together is better" in lines[1]
    assert as_json(outcome, {})["cut_short"] == "out of luck"


def test_too_few_rounds_before_a_failure_are_that_failure():
    with pytest.raises(RunFailed, match="out of luck"):
        complete(failing_after(5), (RunFailed,))


def test_what_is_no_failure_of_a_run_is_raised():
    with pytest.raises(RunFailed):
        complete(failing_after(8), (OSError,))
