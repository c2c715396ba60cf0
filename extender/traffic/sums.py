"""Traffic between pods as both of its ends count it, each pair once, fading with time.

Both ends' nodes report a pair on two nodes. The server's count is kept apart from the client's, and is the one that
counts; the client's stands in where the server's node reports nothing: it runs no enforcer, sees the client behind
another address, or has been silent for a half-life while the client's goes on.

Counts fade by half with every half-life. Rather than fading each sum as time goes, each count is made heavier the later
it comes: 2^((time - epoch) / half-life). So sums don't depend on the order in which counts arrive, and their ranking by
weight not on when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nsmallest
from math import exp2, isfinite, log
from typing import NamedTuple

from numakin.placement.model.errors import BadTraffic
from numakin.placement.traffic.graph import HALF_LIFE_S, Costs, Key, Rate

MOST_EDGES = 100_000
"""Directed edges between pods, of both reports together: some 40 MB."""

SHED = 0.1
"""Share of the cap that is made free at once, so that the lightest are not searched for at each count."""

FADED = 8
"""Half-lives after which an edge without news is forgotten: less than half a percent of it is left."""

EPOCHS = 256
"""Half-lives after which the epoch is moved on: 2^256 times a count is far from a float's end."""


class PodPair(NamedTuple):
    """One direction between two pods. server: the end that serves the other; empty on one node, where there is one
    report only.
    """

    source: str
    target: str
    kind: str
    server: str = ""


class Sum(NamedTuple):
    """In the epoch's units, and the time of the latest count."""

    bytes: float
    messages: float
    at: float


class Sums:
    """One owner. dropped: edges that the cap has cost so far."""

    def __init__(
        self, half_life: float = HALF_LIFE_S, most_edges: int = MOST_EDGES, costs: Costs | None = None
    ) -> None:
        if not (isfinite(half_life) and half_life > 0):
            raise BadTraffic(f"a half-life must be a positive number of seconds, not {half_life}")
        if most_edges < 1:
            raise BadTraffic(f"the cap on edges must be at least 1, not {most_edges}")
        self.half_life = half_life
        self.costs = costs or Costs()
        self.dropped = 0
        self._most = most_edges
        self._epoch: float | None = None
        self._trusted: dict[PodPair, Sum] = {}
        self._claimed: dict[PodPair, Sum] = {}

    def __len__(self) -> int:
        return len(self._trusted) + len(self._claimed)

    def add(self, pair: PodPair, size: int, messages: int, at: float, *, trusted: bool) -> None:
        """Counts of some seconds before `at`. trusted: not the client's report of a pair on two nodes."""
        if self._epoch is None:
            self._epoch = at
        elif at - self._epoch > EPOCHS * self.half_life:
            self._move_epoch(at)
        gain = log(2) / self.half_life * exp2((at - self._epoch) / self.half_life)
        sums = self._trusted if trusted else self._claimed
        old = sums.get(pair)
        if old is None:
            sums[pair] = Sum(gain * size, gain * messages, at)
            if len(self) > self._most:
                self._shed()
        else:
            sums[pair] = Sum(old.bytes + gain * size, old.messages + gain * messages, max(old.at, at))

    def rates(self, now: float) -> dict[Key, Rate]:
        """What each edge carries in a second, each pair counted once."""
        left = exp2((self._epoch - now) / self.half_life) if self._epoch is not None else 0.0
        rates: dict[Key, Rate] = {}
        for pair, total in self._believed():
            key = Key(*pair[:3])
            before = rates.get(key)
            rate = Rate(left * total.bytes, left * total.messages)
            rates[key] = Rate(before.bytes + rate.bytes, before.messages + rate.messages) if before else rate
        return rates

    def tidy(self, now: float) -> None:
        """Forgets what has faded."""
        oldest = now - FADED * self.half_life
        self._trusted = {pair: total for pair, total in self._trusted.items() if total.at > oldest}
        self._claimed = {pair: total for pair, total in self._claimed.items() if total.at > oldest}

    def _believed(self) -> Iterator[tuple[PodPair, Sum]]:
        for pair, trusted in self._trusted.items():
            claim = self._claimed.get(pair)
            yield pair, claim if claim and claim.at - trusted.at > self.half_life else trusted
        for pair, claim in self._claimed.items():
            if pair not in self._trusted:
                yield pair, claim

    def _shed(self) -> None:
        """Drops the lightest, and to some more than the cap asks for."""
        over = len(self) - self._most + int(SHED * self._most)
        ranked = [
            (self._weight(pair, total), pair, sums)
            for sums in (self._trusted, self._claimed)
            for pair, total in sums.items()
        ]
        for _, pair, sums in nsmallest(over, ranked, key=lambda entry: entry[:2]):
            del sums[pair]
        self.dropped += over

    def _weight(self, pair: PodPair, total: Sum) -> float:
        return self.costs.weight(pair.kind, Rate(total.bytes, total.messages))

    def _move_epoch(self, to: float) -> None:
        assert self._epoch is not None
        factor = exp2((self._epoch - to) / self.half_life)
        self._trusted, self._claimed = _scaled(self._trusted, factor), _scaled(self._claimed, factor)
        self._epoch = to


def _scaled(sums: Mapping[PodPair, Sum], factor: float) -> dict[PodPair, Sum]:
    return {pair: Sum(factor * total.bytes, factor * total.messages, total.at) for pair, total in sums.items()}
