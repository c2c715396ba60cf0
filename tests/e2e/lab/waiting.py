"""Waiting for something to become true, with a deadline and a name for what was waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from standins.patience import PATIENCE_S

T = TypeVar("T")

PAUSE_S = 0.05


def until(check: Callable[[], T], what: str, seconds: float = PATIENCE_S, *, pause_s: float = PAUSE_S) -> T:
    """The first truthy value of `check()`. Raises TimeoutError naming `what`."""
    deadline = time.monotonic() + seconds
    while not (value := check()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(pause_s)
    return value
