"""The memory policy that a process runs under, by /proc/PID/numa_maps."""

from __future__ import annotations

import os
from pathlib import Path

READ = 4096
"""Bytes: the first mappings, of the program itself. The kernel walks the pages of each mapping that it writes down."""


def policy_of(proc_root: Path, pid: int) -> str | None:
    """The kernel's word for it, such as `default`, `bind:0-1` or `prefer:0`; None where it can't be read: the process
    has ended, we may not look, or the kernel knows no NUMA.

    Of the first mapping: the process's own policy is that of every mapping which has none of its own.
    """
    try:
        descriptor = os.open(Path(proc_root) / str(pid) / "numa_maps", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(descriptor, READ).split(b"\n", 1)[0].split()
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return fields[1].decode("ascii", "replace") if len(fields) > 1 else None
