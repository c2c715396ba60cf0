"""Which keys of a map have stood still long enough to be deleted, so that the map does not fill up."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

IDLE_READINGS = 30
"""A key that did not move for so many readings goes: five minutes at a reading every ten seconds."""

IDLE_READINGS_CROWDED = 3
"""The same once three quarters of the map are in use."""

K = TypeVar("K", bound=Hashable)


class Idle(Generic[K]):
    """Remembers each key's event count from one reading to the next."""

    def __init__(self, capacity: int) -> None:
        self._crowded = capacity * 3 // 4
        self._seen: dict[K, tuple[int, int]] = {}

    def after(self, events: Mapping[K, int]) -> list[K]:
        """Keys to delete after a reading that found `events` for each key."""
        seen = {}
        for key, count in events.items():
            before, readings = self._seen.get(key, (-1, 0))
            seen[key] = (count, readings + 1 if before == count else 0)
        self._seen = seen
        limit = IDLE_READINGS_CROWDED if len(seen) >= self._crowded else IDLE_READINGS
        return [key for key, (_, readings) in seen.items() if readings >= limit]
