"""How long tests wait for what must come, and how."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 180.0
"""Only what has failed takes so long: other work on the machine may slow a process that starts in 1 s twenty times."""

PAUSE_S = 0.02


def until(check: Callable[[], T], what: str, seconds: float = PATIENCE_S, *, pause_s: float = PAUSE_S) -> T:
    """The first truthy value of `check()`. Raises TimeoutError naming `what`."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(pause_s)
    return value
