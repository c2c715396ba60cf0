"""What `python -m benchmarks.quality.caches` measures."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.quality import caches
from lab.standins.machines import MACHINES


def test_moves_bring_traffic_into_one_cache_and_not_more_than_the_best(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(caches, "WINDOWS", 9)
    outcome = caches.life(MACHINES["epyc-7742-nps1"].machine, 0.7, Random(1))
    assert 0 < outcome.came < outcome.moved <= outcome.best < 1
    assert 0 < outcome.moves < 1
