"""What glibc keeps of memory that was freed, and what the kernel has mapped. Standard library only; where the C library
is another one, nothing of glibc's happens.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from pathlib import Path

_libc = ctypes.CDLL(None)

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
_MADV_DONTNEED = 4

_READ_ONLY_FILE = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-.p [0-9a-f]+ \S+ [1-9]\d* .*\n(?:[A-Z]\w+: .*\n)*?Anonymous: +0 kB$", re.MULTILINE
)
"""In /proc/PID/smaps, a part of a file that can't be written to, and never was: relocations are in no file."""

BLOCK = 32 << 10
"""Bytes: protobuf's largest blocks, of which large messages are made."""


def share_one_arena() -> None:
    """For all threads, instead of one for each, with free memory of its own. Called before the first thread starts."""
    with suppress(AttributeError):
        _libc.mallopt(_M_ARENA_MAX, 1)


def return_blocks() -> None:
    """Blocks of large messages go back to the kernel as soon as they are freed, each by a system call, instead of when
    what lies behind them is free too.
    """
    with suppress(AttributeError):
        _libc.mallopt(_M_MMAP_THRESHOLD, BLOCK)


def give_back() -> None:
    """Gives pages of freed memory back to the kernel, also those between others: some 0.2 ms where there are none."""
    with suppress(AttributeError):
        _libc.malloc_trim(0)


def leave_files() -> None:
    """Unmaps what was read of programs' and libraries' files, most of which is needed at the start alone: some 4 ms.
    What is used again is mapped again, as a rule from the kernel's cache of files.
    """
    with suppress(AttributeError, OSError):
        for mapping in _READ_ONLY_FILE.finditer(Path("/proc/self/smaps").read_text()):
            begin, end = int(mapping[1], 16), int(mapping[2], 16)
            _libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)
