"""Machines' sysfs trees for tests that only read them: thousands of files, written once."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from standins.machines import MACHINES, write_sysfs


@cache
def sysfs(name: str) -> Path:
    """Gone with the process. Who changes a file writes a tree of its own."""
    folder = Path(tempfile.mkdtemp(prefix="numakin-sysfs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_sysfs(MACHINES[name], folder)
    return folder
