"""What `ps` and `top` show for a process that was forked. Standard library only."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_NAME = 15

_ARG_START, _ARG_END = 45, 46
"""Where the kernel looks for the command line: fields 48 and 49 of /proc/self/stat, from the third on (proc(5))."""


def set_title(words: Sequence[str]) -> None:
    """Puts these words in place of the command line, as far as they fit into its memory, and the first 15 bytes of the
    first one in place of the name. Nothing happens where there is no /proc.
    """
    with suppress(OSError):
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(stat[_ARG_START]), int(stat[_ARG_END])
        size = max(0, end - start)
        # A last byte other than 0 would make the kernel go on into the environment.
        title = b"".join(os.fsencode(word) + b"\0" for word in words)[: max(0, size - 1)]
        ctypes.memmove(start, title.ljust(size, b"\0"), size)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, os.fsencode(words[0])[:15] + b"\0")
