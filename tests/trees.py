"""Machines' sysfs trees for tests that only read them: thousands of files, written once."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from lab.standins.machines import MACHINES, write_sysfs

_made: list[Path] = []


@cache
def sysfs(name: str) -> Path:
    """Who changes a file writes a tree of its own."""
    folder = Path(tempfile.mkdtemp(prefix="numakin-sysfs-"))
    _made.append(folder)
    write_sysfs(MACHINES[name], folder)
    return folder


@atexit.register
def remove() -> None:
    """All trees, at the end of the process, or before."""
    sysfs.cache_clear()
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
