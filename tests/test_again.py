"""A test that fails in a run of all is run once more, alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S
from tests.again import MOST, TOO_BUSY

ROOT = Path(__file__).parents[1]

BROKEN = "def test_broken():\n    raise AssertionError\n"
DISTURBED = """
from pathlib import Path

def test_disturbed():
    seen = Path("seen")
    before = seen.exists()
    seen.touch()
    assert before
"""

ONE_AFTER_THE_OTHER = """
from pathlib import Path

import pytest

@pytest.fixture(scope="module")
def steps():
    again = Path("seen").exists()
    Path("seen").touch()
    yield [again]

def test_zero(steps):
    assert steps == [True]
    steps.append("zero")

def test_after_zero(steps):
    assert steps == [True, "zero"]
"""

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Half of what such a run takes would be their imports."""

LOADED = "from tests import pace\n\npytest_plugins = ('tests.again',)\npace.load = lambda: {load}\n"


def run(folder: Path, *texts: str, ci: bool = False, load: float = 0.0) -> subprocess.CompletedProcess[str]:
    """As the Makefile does, with a file of each text. load: of the machine, by CPU."""
    (folder / "conftest.py").write_text(LOADED.format(load=load))
    for number, text in enumerate(texts):
        (folder / f"test_it{number or ''}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = f"{sys.executable} -m pytest --cache-clear || {sys.executable} -m tests.again $?"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CI": "true" if ci else "", **NO_PLUGINS}
    return subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=PATIENCE_S,
        check=False,
    )


def test_what_passes_alone_is_named_in_the_last_line(tmp_path: Path) -> None:
    result = run(tmp_path, DISTURBED)
    assert result.returncode == 0
    last = (
        "FAILED BESIDE OTHERS, PASSED ALONE (load by CPU 0.0): test_it.py::test_disturbed: assert False (test_it.py:8)"
    )
    assert result.stdout.splitlines()[-1] == last
    assert "assert False" in result.stdout, "what was seen the first time stays in the output"


def test_in_ci_what_passes_only_alone_fails_the_run(tmp_path: Path) -> None:
    result = run(tmp_path, DISTURBED, ci=True, load=TOO_BUSY)
    assert result.returncode == 1
    last = f"FAILED BESIDE OTHERS, PASSED ALONE (load by CPU {TOO_BUSY}): test_it.py::test_disturbed: assert False (test_it.py:8)"
    assert result.stdout.splitlines()[-1] == last


def test_where_the_machine_was_too_busy_it_is_told_and_does_not_fail_ci(tmp_path: Path) -> None:
    result = run(tmp_path, DISTURBED, ci=True, load=TOO_BUSY + 1)
    assert result.returncode == 0
    why = f"load by CPU {TOO_BUSY + 1}, over {TOO_BUSY:g}: the machine was too busy"
    last = f"FAILED BESIDE OTHERS, PASSED ALONE ({why}): test_it.py::test_disturbed: assert False (test_it.py:8)"
    assert result.stdout.splitlines()[-1] == last


def test_what_fails_again_fails_the_run_and_what_does_not_is_told_apart(tmp_path: Path) -> None:
    result = run(tmp_path, BROKEN + DISTURBED)
    assert result.returncode == 1
    assert [line for line in result.stdout.splitlines() if line.startswith("FAILED BESIDE OTHERS")] == [
        "FAILED BESIDE OTHERS: test_it.py::test_broken: AssertionError (test_it.py:2)",
        "FAILED BESIDE OTHERS, PASSED ALONE (load by CPU 0.0): test_it.py::test_disturbed: assert False (test_it.py:10)",
    ]


def test_what_was_interrupted_elsewhere_is_told_with_the_line_of_ours_that_led_there(tmp_path: Path) -> None:
    result = run(tmp_path, "import json\n\ndef test_broken():\n    json.loads('')\n")
    told = result.stdout.splitlines()[-1]
    assert told.startswith("FAILED BESIDE OTHERS: test_it.py::test_broken: json.decoder.JSONDecodeError")
    assert told.endswith("(test_it.py:4)")


def test_they_come_in_the_order_of_their_file(tmp_path: Path) -> None:
    """Tests that share what they change may need what those before them did."""
    result = run(tmp_path, ONE_AFTER_THE_OTHER)
    assert result.returncode == 0, result.stdout


def test_a_run_without_failures_is_not_repeated(tmp_path: Path) -> None:
    result = run(tmp_path, "def test_good():\n    pass\n")
    assert result.returncode == 0
    assert result.stdout.count("1 passed") == 1


@pytest.mark.parametrize("text", ["import nothing_of_this_name\n", "raise KeyboardInterrupt\n"])
def test_a_run_that_did_not_come_to_the_tests_keeps_its_status(tmp_path: Path, text: str) -> None:
    result = run(tmp_path, text)
    assert result.returncode == 2


def test_a_run_that_failed_though_no_test_did_is_not_repeated_and_keeps_its_status(tmp_path: Path) -> None:
    result = run(tmp_path, "def test_good(pytestconfig):\n    pytestconfig.add_cleanup(lambda: 1 / 0)\n")
    assert result.returncode == 1
    assert result.stdout.count("1 passed") == 1


def test_one_thing_that_many_tests_share_is_one_cause(tmp_path: Path) -> None:
    shared = DISTURBED.replace("def test_disturbed", "import pytest\n\n@pytest.fixture(scope='module')\ndef shared")
    result = run(tmp_path, shared + "".join(f"def test_{number}(shared):\n    pass\n" for number in range(MOST + 1)))
    assert result.returncode == 0
    why = "assert False (test_it.py:11)"
    told = f"FAILED BESIDE OTHERS, PASSED ALONE (load by CPU 0.0): {MOST + 1} tests of test_it.py: {why}"
    assert result.stdout.splitlines()[-1] == told
    assert "test_it.py::test_0\n" in result.stdout


def test_failures_in_many_files_are_not_run_once_more(tmp_path: Path) -> None:
    result = run(tmp_path, *[BROKEN] * (MOST + 1))
    assert result.returncode == 1
    told = f"{MOST + 1} tests of {MOST + 1} files failed: those of more than {MOST} are not run once more"
    assert result.stdout.splitlines()[-1] == told
