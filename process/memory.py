"""What glibc keeps of memory that was freed. Standard library only; nothing happens with another C library."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_libc = ctypes.CDLL(None)

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3

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
