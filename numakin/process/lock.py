"""One enforcer per node: two would both claim a container's cpuset, and its creation would fail."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from numakin.process.log import Log

log = Log("supervisor")

PATIENCE_S = 3.0
"""How long to wait for a predecessor that is just ending."""


class AnotherRunsError(RuntimeError):
    """Another enforcer holds this node's lock."""


def acquire(run_dir: Path) -> int:
    """The lock's descriptor: held as long as any process has it open. The folder is made when missing."""
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = run_dir / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
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
        with suppress(OSError):  # whom it is held by is for people; a full file system has no room for it
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor


def renewed(run_dir: Path, descriptor: int) -> int:
    """The lock's descriptor, another one where the file was deleted, which a second enforcer would make anew.

    AnotherRunsError when one already did. The old descriptor where there can be no new file now.
    """
    if os.fstat(descriptor).st_nlink:
        return descriptor
    try:
        anew = acquire(run_dir)
    except OSError as error:
        log.debug("the lock can't be made anew", folder=run_dir, error=error)
        return descriptor
    log.warning("the run folder's lock was deleted, and is made anew", folder=run_dir)
    os.close(descriptor)
    return anew
