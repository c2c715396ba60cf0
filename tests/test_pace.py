"""A test that takes much longer than it should fails by name; a busy machine gives it more time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S
from tests.pace import (
    LOAD_PER_CPU,
    LONGEST_FILE_S,
    MAY_TAKE_LONGER,
    MOST_RUNNING,
    MOST_S,
    UNTIL,
    Room,
    bound,
    running,
    turn,
)

ROOT = Path(__file__).parents[1]

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Half of what such a run takes would be their imports."""

CONFTEST = """
import pytest
from tests import pace

pytest_plugins = ("tests.pace",)
pace.MOST_S, pace.load = 0.5, lambda: {load}
pace.MAY_TAKE_LONGER["test_listed.py"] = "it is told why"
"""

SLEEPS = """
import time
import pytest

@pytest.fixture
def own():
    time.sleep(0.6)

@pytest.fixture
def ends():
    yield
    time.sleep(0.6)

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.6)
"""

HANGING = SLEEPS + "\ndef test_it():\n    time.sleep(0.6)\n"


OF_BOTH_TIERS = """
import pytest

def test_first():
    pass

def test_second():
    pass

@pytest.mark.thorough
def test_third():
    pass
"""

CLOCK = """
from tests import pace

pytest_plugins = ("tests.pace",)
pace.now = iter({times}).__next__
"""


@pytest.mark.parametrize(
    ("times", "begun"),
    [((0, 0), 3), ((0, 1), 2), ((LONGEST_FILE_S, LONGEST_FILE_S), 2), ((LONGEST_FILE_S + 1, LONGEST_FILE_S + 1), 0)],
    ids=["in time", "too late for the second tier", "nearly over", "over"],
)
def test_no_file_is_begun_when_the_time_of_a_run_is_over(tmp_path: Path, times: tuple[int, int], begun: int) -> None:
    """times: when each tier's tests of a file come to their turn. A file that was begun is run whole."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough: slow\n")
    (tmp_path / "conftest.py").write_text(CLOCK.format(times=times))
    (tmp_path / "test_it.py").write_text(OF_BOTH_TIERS)
    output = timed(tmp_path)
    assert passed_in(output) == begun
    assert ("the time of this run was over" in output) == (begun < 3)


@pytest.mark.parametrize(("fixture", "passed"), [("four_nodes", 2), ("numavm", 1)], ids=["same", "each its own"])
def test_what_an_emulated_machine_computed_is_read_late_too(tmp_path: Path, fixture: str, passed: int) -> None:
    """Of two files the first is begun in time, the second comes when it is over."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough: slow\n")
    boot = f"\n@pytest.fixture(scope='session')\ndef {fixture}():\n    pass\n"
    (tmp_path / "conftest.py").write_text("import pytest\n" + CLOCK.format(times=(0, LONGEST_FILE_S + 1)) + boot)
    for name in ("test_first.py", "test_second.py"):
        (tmp_path / name).write_text(f"import pytest\n\n@pytest.mark.thorough\ndef test_it({fixture}):\n    pass\n")
    output = timed(tmp_path)
    assert passed_in(output) == passed, output


def timed(folder: Path) -> str:
    """What a run that has LONGEST_FILE_S + 1 seconds prints, none of whose tests fails."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(folder)],
        capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), **NO_PLUGINS, UNTIL: str(LONGEST_FILE_S + 1)},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    return run.stdout


def passed_in(output: str) -> int:
    """How many tests passed."""
    return sum(map(int, re.findall(r"(\d+) passed", output)))


def failures(folder: Path, text: str, *, load: float = 0.0, name: str = "test_it.py") -> list[str]:
    """The names of tests that failed for taking too long."""
    (folder / "conftest.py").write_text(CONFTEST.format(load=load))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    numavm: emulated\n")
    (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-rfE", "-p", "no:cacheprovider", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), **NO_PLUGINS}
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=PATIENCE_S, check=False
    )
    return re.findall(r"^(?:FAILED|ERROR) \S+::(\w+) - took \d+ s, where a test may take 0 s", run.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    "body",
    ["def test_it():\n    time.sleep(0.6)\n", "def test_it(own):\n    pass\n", "def test_it(ends):\n    pass\n\ndef test_next():\n    pass\n"],
    ids=["in the test", "in a fixture of its own", "in the end of one"],
)  # fmt: skip
def test_what_sleeps_until_its_patience_ends_fails_by_name(tmp_path: Path, body: str) -> None:
    assert failures(tmp_path, SLEEPS + body) == ["test_it"]


def test_what_several_share_is_nobody_s_own(tmp_path: Path) -> None:
    assert failures(tmp_path, SLEEPS + "def test_it(shared):\n    pass\n") == []


def test_a_busy_machine_gives_more_time(tmp_path: Path) -> None:
    assert failures(tmp_path, HANGING, load=1.0) == []


def test_what_is_listed_may_take_longer(tmp_path: Path) -> None:
    assert failures(tmp_path, HANGING, name="test_listed.py") == []


def test_what_an_emulated_machine_computes_may_take_longer(tmp_path: Path) -> None:
    marked = HANGING.replace("def test_it", "@pytest.mark.numavm\ndef test_it")
    assert failures(tmp_path, marked) == []


@pytest.mark.parametrize(
    ("load", "most_s"), [(0.0, MOST_S), (LOAD_PER_CPU, MOST_S), (1.0, 2 * MOST_S), (4.0, 8 * MOST_S)]
)
def test_the_bound_grows_with_the_load(load: float, most_s: float) -> None:
    assert bound(load) == most_s


@pytest.mark.parametrize("prefix", MAY_TAKE_LONGER)
def test_what_is_listed_is_there(prefix: str) -> None:
    assert (ROOT / prefix).exists()


@pytest.mark.parametrize(
    ("measured", "rests"),
    [((MOST_RUNNING,), 0), ((9.0, 5.0, MOST_RUNNING), 2), ((9.0,) * 9, 4)],
    ids=["room", "room after a while", "none for longer than is waited"],
)
def test_a_file_is_begun_when_the_cpus_have_room(measured: tuple[float, ...], rests: int) -> None:
    rested: list[float] = []
    Room(left_s=2.0, measure=iter(measured).__next__, rest=rested.append).wait()
    assert rested == [0.5] * rests


def test_what_runs_is_counted_with_who_counts() -> None:
    assert running() > 0


def test_as_many_collect_at_a_time_as_there_are_cpus() -> None:
    third_is_in = threading.Event()

    def third() -> None:
        with turn(2, 2):
            third_is_in.set()

    waits = threading.Thread(target=third)
    with turn(1, 2):
        with turn(0, 2):
            waits.start()
            assert not third_is_in.wait(0.2)
        assert third_is_in.wait(PATIENCE_S)
    waits.join()
