"""The memory policy of a process, as the kernel has it in force."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from enforcer.machine.memory import policy_of, takes_preferred_many

PROC = Path("/proc")

SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
"""System calls of that name."""

PROGRAM = """\
import ctypes, sys
number, mode = map(int, sys.argv[1:])
assert ctypes.CDLL(None).syscall(number, mode, ctypes.byref(ctypes.c_ulong(1)) if mode else None, 64) == 0
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def process(mode: int) -> Iterator[int]:
    """Under a policy of NUMA node 0."""
    command = [sys.executable, "-c", PROGRAM, str(SET_MEMPOLICY[platform.machine()]), str(mode)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == "\n"
        yield made.pid
        made.kill()


@pytest.mark.parametrize(("mode", "word"), [(0, "default"), (2, "bind:0"), (3, "interleave:0")], ids=str)
def test_it_is_the_kernels_word_for_it(mode: int, word: str) -> None:
    with process(mode) as pid:
        assert policy_of(PROC, pid) == word


def kernel(folder: Path, release: str) -> tuple[Path, Path]:
    """sysfs and procfs of one that was built for NUMA."""
    (folder / "sys/devices/system/node").mkdir(parents=True)
    (folder / "proc/sys/kernel").mkdir(parents=True)
    (folder / "proc/sys/kernel/osrelease").write_text(f"{release}\n")
    return folder / "sys", folder / "proc"


@pytest.mark.parametrize(
    ("release", "takes"),
    [
        ("4.18.0-553.el8_10.x86_64", False),
        ("5.14.0-503.el9.aarch64", False),
        ("5.15.0-91-generic", True),
        ("6.1.0", True),
        ("10.0", True),
        ("custom", False),
    ],
)
def test_several_numa_nodes_are_preferred_where_the_kernels_release_knows_that(
    tmp_path: Path, release: str, *, takes: bool
) -> None:
    assert takes_preferred_many(*kernel(tmp_path, release)) == takes


@pytest.mark.parametrize("missing", ["sys/devices/system/node", "proc/sys/kernel/osrelease"])
def test_no_policy_is_known_to_a_kernel_without_numa_or_of_an_unknown_release(tmp_path: Path, missing: str) -> None:
    there = kernel(tmp_path, "6.1.0")
    (tmp_path / missing).rename(tmp_path / "elsewhere")
    assert not takes_preferred_many(*there)


@pytest.mark.skipif(not takes_preferred_many(Path("/sys"), PROC), reason="this kernel knows no such policy")
def test_what_is_known_is_taken() -> None:
    with process(5) as pid:
        assert policy_of(PROC, pid) == "prefer"


def test_of_a_process_that_has_ended_nothing_is_known() -> None:
    assert policy_of(PROC, (1 << 22) + 1) is None


def test_where_the_kernel_knows_no_numa_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    assert policy_of(tmp_path, 7) is None


def test_what_can_not_be_read_as_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    for text in ("", "\n", "5566f0cf8000\n"):
        (tmp_path / "7/numa_maps").write_text(text)
        assert policy_of(tmp_path, 7) is None
