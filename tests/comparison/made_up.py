"""Rounds as they might have been measured."""

from __future__ import annotations

from comparison.arms import AGAIN, SPREAD, TOGETHER, UNPINNED
from comparison.running import Run
from comparison.workloads import Figures


def made_up(again: float) -> list[dict[str, Run]]:
    figures = {TOGETHER: 120.0, SPREAD: 100.0, UNPINNED: 110.0, AGAIN: again}
    return [{name: Run(name, Figures(rate + at, 1.0), None, None) for name, rate in figures.items()} for at in range(8)]
