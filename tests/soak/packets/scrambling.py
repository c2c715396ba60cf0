"""What becomes of each packet that goes one way: a pure state machine."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random


@dataclass(frozen=True, slots=True)
class Shares:
    """Of all packets, from 0 to 1. delay_s: of each. reordered: those that are held back for up to held_s more, so that
    what comes meanwhile overtakes them.
    """

    lost: float = 0.0
    duplicated: float = 0.0
    reordered: float = 0.0
    delay_s: float = 0.0
    held_s: float = 0.0


CALM = Shares()


@dataclass(slots=True)
class Counts:
    """Packets that came while any share was set; how many of them were lost, sent twice and held back; and how many left
    after one that had come later. waiting: those that have not left yet.
    """

    came: int = 0
    lost: int = 0
    duplicated: int = 0
    held: int = 0
    overtaken: int = 0
    waiting: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.came + other.came,
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.held + other.held,
            self.overtaken + other.overtaken,
            self.waiting + other.waiting,
        )


class Crossing:
    """One way over the link. Times are in seconds, by any clock that only goes forward."""

    def __init__(self) -> None:
        self._shares, self._random = CALM, Random(0)
        self._counts = Counts()
        self._numbers = count()
        self._latest = -1
        self._waiting: list[tuple[float, int, bytes]] = []

    @property
    def counts(self) -> Counts:
        return self._counts + Counts(waiting=len(self._waiting))

    def scramble(self, shares: Shares, seed: int) -> None:
        """Holds for the packets from now on."""
        self._shares, self._random = shares, Random(seed)

    def came(self, packet: bytes, now: float) -> None:
        shares, counts, draw = self._shares, self._counts, self._random.random
        if shares == CALM:
            self._wait(packet, now)
            return
        counts.came += 1
        if draw() < shares.lost:
            counts.lost += 1
            return
        twice = draw() < shares.duplicated
        counts.duplicated += twice
        for _ in range(1 + twice):
            held = draw() < shares.reordered
            counts.held += held
            self._wait(packet, now + shares.delay_s + held * draw() * shares.held_s)

    def due(self, now: float) -> Iterator[bytes]:
        """What leaves by now, in the order in which it does."""
        while self._waiting and self._waiting[0][0] <= now:
            _, number, packet = heapq.heappop(self._waiting)
            self._counts.overtaken += number < self._latest
            self._latest = max(self._latest, number)
            yield packet

    def next_s(self) -> float | None:
        """When the next one leaves; None while none waits."""
        return self._waiting[0][0] if self._waiting else None

    def _wait(self, packet: bytes, until: float) -> None:
        heapq.heappush(self._waiting, (until, next(self._numbers), packet))
