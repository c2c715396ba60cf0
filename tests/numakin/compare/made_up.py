"""Rounds as they might have been measured."""

from __future__ import annotations

from numakin.compare.arms import AGAIN, SPREAD, TOGETHER, UNPINNED
from numakin.compare.running import Run
from numakin.compare.workloads import Figures


def made_up(again: float, late_again: float = 1.0) -> list[dict[str, Run]]:
    """again, late_again: the control's throughput, whose other half has 110, and latency, whose other half has 1."""
    figures = {TOGETHER: (120.0, 0.8), SPREAD: (100.0, 1.0), UNPINNED: (110.0, 1.0), AGAIN: (again, late_again)}
    return [
        {name: Run(name, Figures(rate + at, late), None, None) for name, (rate, late) in figures.items()}
        for at in range(8)
    ]
