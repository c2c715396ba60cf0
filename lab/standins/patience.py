"""How long tests wait for what must come, and how."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 180.0
"""Only what has failed takes so long: other work on the machine may slow a process that starts in 1 s twenty times."""

PAUSE_S = 0.02

RESTS = 3
"""Times as long as a question took, until it is asked again, at most MOST_PAUSE_S: who answers needs CPUs too."""

MOST_PAUSE_S = 1.0


def until(check: Callable[[], T], what: str, seconds: float = PATIENCE_S, *, pause_s: float = PAUSE_S) -> T:
    """The first truthy value of `check()`. Raises TimeoutError naming `what`. pause_s: rested at the least."""
    deadline = (begin := time.monotonic()) + seconds
    while not (value := check()):
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(max(pause_s, min(MOST_PAUSE_S, RESTS * (now - begin))))
        begin = time.monotonic()
    return value
