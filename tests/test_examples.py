"""What is drawn at random for every change is a sample of what is drawn elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import examples

ROOT = Path(__file__).parents[1]


def test_all_are_drawn_unless_fewer_are_asked_for():
    assert settings.get_profile("any machine").max_examples == examples.ALL
    assert settings.get_profile(examples.FEWER).max_examples == examples.ALL // 4


@pytest.fixture
def fewer() -> Iterator[None]:
    before = settings.get_current_profile_name()
    settings.load_profile(examples.FEWER)
    yield
    settings.load_profile(before)


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize(
    ("all_of_them", "drawn"),
    [(200, 50), (100, 25), (25, 6), (15, examples.LEAST), (3, 3)],
    ids=str,
)
def test_of_fewer_it_is_a_quarter_and_never_next_to_nothing(all_of_them: int, drawn: int):
    assert examples.of(all_of_them) == drawn


def commands(target: str, *variables: str) -> str:
    """What make would run, whatever make has started these tests."""
    command = ["make", "--dry-run", "--always-make", target, *variables]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "ARGS")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_fewer_are_drawn_by_make_test_alone_and_there_of_all_tests_alone():
    asked = f"--hypothesis-profile={examples.FEWER}"
    assert asked in commands("test")
    assert asked not in commands("test", "ARGS=tests/numakin")
    assert asked not in commands("test-all")
