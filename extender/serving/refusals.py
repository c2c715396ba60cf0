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
        self._logged: dict[str, float] = {}

    def over(self, limit: str, peer: str) -> None:
        self._count(limit)
        now = self._clock()
        if now - self._logged.get(limit, -LOG_EVERY_S) >= LOG_EVERY_S:
            self._logged[limit] = now
            _log.warning("over a limit", limit=limit, peer=peer, metric="numakin_extender_over_limit_total")
