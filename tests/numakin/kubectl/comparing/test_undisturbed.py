"""What pods that restart under the load are worth in a comparison."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import pytest

from numakin.compare.rounds import Round
from numakin.compare.running import Run
from numakin.compare.workloads import Figures
from numakin.kubectl.comparing.command import told
from numakin.kubectl.comparing.templates import AGAIN, WITH, WITHOUT
from numakin.kubectl.errors import CommandError


def measured(*disturbed: str) -> Round:
    """One round. disturbed: the ways in which two pods restarted, which halved what was served."""
    return {
        way: Run(way, Figures(50.0 if way in disturbed else 100.0, None), None, None, 1.0, 2 if way in disturbed else 0)
        for way in (WITH, WITHOUT, AGAIN)
    }


def shown(capsys: pytest.CaptureFixture[str], rounds: Sequence[Round], output: str = "table") -> tuple[int, str]:
    code = told(tuple(rounds), "", Namespace(output=output, json=False, reads=""), {})
    return code, capsys.readouterr().out


def test_the_round_is_left_out_and_the_conclusion_says_so(capsys):
    rounds = [measured(), measured(WITHOUT), measured(WITH, WITHOUT)] + [measured()] * 7
    code, text = shown(capsys, rounds)
    assert code == 1
    assert (
        "2 of 10 rounds are left out: pods restarted or were replaced under the load (with numakin in 1, without in 2)"
        in " ".join(text.split())
    )
    assert "no difference can be distinguished from noise: x 1.000" in text
    answer: dict[str, Any] = json.loads(shown(capsys, rounds, "json")[1])
    assert (len(answer["rounds"]), len(answer["left_out"])) == (8, 2)


def test_too_few_that_are_left_conclude_nothing(capsys):
    code, text = shown(capsys, [measured(WITHOUT)] * 3 + [measured()] * 5)
    assert code == 1
    assert "5 rounds are too few to conclude anything" in text


def test_where_all_are_left_out_that_is_all_that_is_told(capsys):
    with pytest.raises(CommandError, match="pods restarted or were replaced under the load in each round"):
        shown(capsys, [measured(WITH)] * 8)
