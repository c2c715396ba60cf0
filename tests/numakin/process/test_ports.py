"""A port for who has to know one before it is taken."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from lab.standins.patience import PATIENCE_S
from numakin.process import ports
from numakin.process.ports import FIRST, LAST, PART, free_port


def test_one_that_somebody_has_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as theirs:
        theirs.bind(("127.0.0.1", taken := free_port()))
        drawn = iter((taken, taken, other := free_port()))
        monkeypatch.setattr(ports, "_all", lambda: drawn)
        assert free_port() == other


def test_none_is_given_twice() -> None:
    """Who got the first may be about to take it."""
    drawn = [free_port() for _ in range(300)]
    assert len(set(drawn)) == len(drawn)


def test_it_is_none_that_the_kernel_gives_to_others() -> None:
    """As to a connection, between this moment and the one in which it is taken."""
    with socket.socket() as anybody:
        anybody.bind(("127.0.0.1", 0))
        assert FIRST <= free_port() <= LAST < anybody.getsockname()[1]


def test_a_process_and_those_that_it_starts_draw_from_their_part_alone() -> None:
    command = [
        sys.executable,
        "-c",
        "from numakin.process.ports import free_port; print(*(free_port() for _ in range(3)))",
    ]
    within = os.environ | {PART: f"{FIRST}-{FIRST + 9}"}
    drawn = subprocess.run(command, env=within, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
    assert set(map(int, drawn.split())) <= set(range(FIRST, FIRST + 10))
