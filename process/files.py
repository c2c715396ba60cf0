"""Files that people name, or that should be the kernel's: read only when they are regular files.

Whoever opens a FIFO waits for somebody to write, and a device may never end; here either is an error, at once.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 16 << 20
"""Bytes, where the reader knows no better bound."""

_CHUNK = 1 << 16


def read_regular(path: Path | str, largest: int = LARGEST) -> bytes:
    """The whole file. OSError, which names it: unreadable, no regular file, or of more bytes than `largest`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        found = bytearray()
        while data := os.read(descriptor, _CHUNK):
            found += data
            if len(found) > largest:
                raise OSError(errno.EFBIG, f"longer than {largest} bytes", str(path))
        return bytes(found)
    finally:
        os.close(descriptor)


def worded(error: OSError) -> str:
    """`PATH: what is wrong`, without the number."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
