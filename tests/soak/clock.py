"""A wall clock that jumps for the processes of one node, by libfaketime: the machine's own belongs to everybody on it.

Only what reads the time of day through the C library is misled, CLOCK_REALTIME alone: Linux lets no monotonic clock jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HOUR = 3600
YEAR = 365 * 24 * HOUR
JUMPS = (HOUR, -HOUR, 20 * YEAR, -20 * YEAR)
"""Seconds: summer time set by hand, and a clock whose battery is empty."""

READ_EVERY_S = 1
"""Seconds after which libfaketime looks at its file again."""

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
"""Of Debian's package faketime; None where it is not installed."""


def forget_killed() -> None:
    """Removes what libfaketime keeps in memory for each process, and leaves there when one is killed."""
    for path in Path("/dev/shm").glob("*faketime_s[eh]m_*"):
        if not Path("/proc", path.name.rpartition("_")[2]).exists():
            path.unlink(missing_ok=True)


class WallClock:
    """folder: takes the file that says how far this clock is off."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._off_by(0)

    @property
    def environment(self) -> Mapping[str, str]:
        """For processes that read this clock."""
        if LIBRARY is None:
            return {}
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": str(READ_EVERY_S),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    @contextmanager
    def jumped(self, seconds: int) -> Iterator[None]:
        """Off by so much, and right again at the end: two jumps."""
        self._off_by(seconds)
        try:
            yield
        finally:
            self._off_by(0)

    def _off_by(self, seconds: int) -> None:
        """As a whole: a process that can't read its file ends."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{seconds:+d}")
        draft.rename(self._file)
