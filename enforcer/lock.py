"""One enforcer per node: two would both claim a container's cpuset, and its creation would fail."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

PATIENCE_S = 3.0
"""How long to wait for a predecessor that is just ending."""


class AnotherRunsError(RuntimeError):
    """Another enforcer holds this node's lock."""


def acquire(run_dir: Path) -> int:
    """The lock's descriptor: held as long as any process has it open. The folder is made when missing."""
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = run_dir / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = path.read_text().strip() or "unknown"
                os.close(descriptor)
                raise AnotherRunsError(
                    f"another numakin-enforcer (pid {holder}) runs on this node and holds {path}; this one leaves"
                ) from None
            time.sleep(0.05)
            continue
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor
