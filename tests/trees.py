"""Machines' sysfs trees for tests: thousands of files, in memory, and for those that only read them written once."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lab.standins.machines import MACHINES, write_sysfs
from lab.standins.machines.in_memory import in_memory

_made: list[Path] = []


@cache
def sysfs(name: str) -> Path:
    """Who changes a file writes a tree of its own."""
    folder = Path(tempfile.mkdtemp(prefix="numakin-sysfs-", dir=in_memory()))
    _made.append(folder)
    write_sysfs(MACHINES[name], folder)
    return folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """For tests that write trees of their own: a conftest that imports it has it instead of pytest's."""
    with tempfile.TemporaryDirectory(prefix="numakin.", dir=in_memory()) as folder:
        yield Path(folder)


@atexit.register
def remove() -> None:
    """All trees, at the end of the process, or before."""
    sysfs.cache_clear()
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
