"""Standard output, as the command lines of both halves use it."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

CUT_OFF = 141
"""Exit code of a program whose reader went away, as a shell has it: 128 + SIGPIPE."""


def takes_any_text() -> None:
    """From now on: bars, frames and names, where the locale's encoding has no such characters, are question marks."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def cut_off() -> int:
    """Its reader has gone away: what is still to be written goes nowhere. The exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CUT_OFF
