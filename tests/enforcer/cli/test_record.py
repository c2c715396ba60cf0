"""Which windows `record` writes: those that end while it runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from enforcer.cli import top
from numakin.terminal import EVERY_S
from tests.clock import Clock


class Observer:
    """It has kept 64 windows once it is asked for them all (which the first answer, of its session, leads to). One more
    ends between two questions, as long as there are any.
    """

    def __init__(self, coming: int) -> None:
        self.last, self.end = 63, 64 + coming

    def get(self, _: str, path: str) -> dict:
        since = int(path.partition("since=")[2])
        windows = [{"number": number, "line": str(number)} for number in range(since + 1, self.last + 1)]
        self.last = min(self.last + 1, self.end)
        return {"session": "a", "windows": windows}


@pytest.fixture
def recorded(monkeypatch, tmp_path: Path):
    """By a clock that only sleeping moves: however slow the machine, there are as many questions."""
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(top, "time", SimpleNamespace(monotonic=clock, sleep=sleep))

    def record(coming: int) -> list[str]:
        monkeypatch.setattr(top, "get", Observer(coming).get)
        assert top.record("there:1", tmp_path / "file", 10 * EVERY_S) == 0
        return (tmp_path / "file").read_text().splitlines()

    return record


def test_what_was_kept_from_before_is_left_out(recorded, capsys):
    assert recorded(3) == ["65", "66", "67"]
    assert ": 3 windows recorded" in capsys.readouterr().out


def test_where_no_window_ended_meanwhile_the_latest_is_written(recorded):
    assert recorded(0) == ["64"]
