"""What was refused because it was over a limit: counted by the limit's name, and logged now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

LOG_EVERY_S = 10.0
"""Between two log lines about one limit: a flooded port must not flood the log."""

_log = structlog.get_logger("limits")


class LimitRefusals:
    """count: called with the limit's name for each refusal, from any thread."""

    def __init__(self, count: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock = count, clock
        self._logged: dict[tuple[str, str], float] = {}

    def over(self, limit: str, peer: str, why: str = "") -> None:
        """why: one of few texts, each of which is logged now and then."""
        self._count(limit)
        now, about = self._clock(), (limit, why)
        if now - self._logged.get(about, -LOG_EVERY_S) >= LOG_EVERY_S:
            self._logged[about] = now
            more = {"why": why} if why else {}
            event = "not let in" if why else "over a limit"
            _log.warning(event, limit=limit, peer=peer, **more, metric="numakin_extender_over_limit_total")
