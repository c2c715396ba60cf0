"""What was refused because it was over a limit: counted by the limit's name, and logged now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from numakin.process.log import Log

LOG_EVERY_S = 10.0
"""Between two log lines about the same: a flooded port must not flood the log."""

_log = Log("limits")


class NowAndThen:
    """What is to be logged of events that a flood brings too. From any thread."""

    def __init__(self) -> None:
        self._logged: dict[tuple[str, ...], float] = {}

    def due(self, *about: str) -> bool:
        """Whether this one is, of all that are about the same; what that may be is few."""
        now = time.monotonic()
        if now - self._logged.get(about, -math.inf) < LOG_EVERY_S:
            return False
        self._logged[about] = now
        return True


class LimitRefusals:
    """count: called with the limit's name for each refusal, from any thread."""

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count, self._logged = count, NowAndThen()

    def over(self, limit: str, peer: str, why: str = "") -> None:
        """why: one of few texts, each of which is logged now and then."""
        self._count(limit)
        if self._logged.due(limit, why):
            more = {"why": why} if why else {}
            event = "not let in" if why else "over a limit"
            _log.warning(event, limit=limit, peer=peer, **more, metric="numakin_extender_over_limit_total")
