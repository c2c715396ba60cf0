"""Files that people name, or that should be the kernel's: read only when they are regular files.

Opening a FIFO waits for its writer, and a device may never end; here either is an error, at once.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 16 << 20
"""Bytes, where the reader knows no better bound."""

_CHUNK = 1 << 14
"""Less than `memory.BLOCK`: where blocks of that size are the kernel's, each reading of a small file would take four
system calls and fresh pages more.
"""


def read_regular(path: Path | str, largest: int = LARGEST, *, private: bool = False) -> bytes:
    """The whole file. OSError, which names it: unreadable, no regular file, or of more bytes than `largest`.

    private: also refused when it is a link, or when another user than this process' may have written or can read it.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if private else 0)
    descriptor = os.open(path, flags)
    try:
        _check(os.fstat(descriptor), str(path), private=private)
        content = bytearray()
        while data := os.read(descriptor, _CHUNK):
            content += data
            if len(content) > largest:
                raise OSError(errno.EFBIG, f"longer than {largest} bytes", str(path))
        return bytes(content)
    finally:
        os.close(descriptor)


def _check(status: os.stat_result, path: str, *, private: bool) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    if private and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
        why = f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}: others may write or read it"
        raise PermissionError(errno.EPERM, why, path)


def worded(error: OSError) -> str:
    """`PATH: what is wrong`, without the number."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
