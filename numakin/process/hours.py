"""Hours of the day, as an option has them: `22:00-06:00`, in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TIME = r"([01]\d|2[0-3]):([0-5]\d)"
_HOURS = re.compile(f"{_TIME}-{_TIME}")

DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """From one minute of the day until another, over midnight where that is the earlier one; the same: always."""

    begin: int = 0
    end: int = 0

    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (self.begin, self.end))

    @classmethod
    def parse(cls, text: str) -> Hours | None:
        """None where the text is no such hours; empty: always."""
        if not text:
            return cls()
        match = _HOURS.fullmatch(text)
        if match is None:
            return None
        hour, minute, last_hour, last_minute = map(int, match.groups())
        hours = cls(60 * hour + minute, 60 * last_hour + last_minute)
        return hours if hours.begin != hours.end else None

    def include(self, timestamp: float) -> bool:
        """timestamp: seconds since 1970. The last minute is over when the end begins."""
        minute = int(timestamp // 60) % DAY
        return self.begin == self.end or (minute - self.begin) % DAY < (self.end - self.begin) % DAY
