"""What was learned of workloads outlives their pods, and the program.

An edge between workloads rests while one of its ends has no pod: it stays as it was last seen, so that a workload that
is scaled to nothing overnight finds its kin in the morning. When it wakes it fades like any traffic, while new traffic
takes its place: what was known and what is seen add up to what is true. What a former extender wrote down
(`learned.py`) comes in as resting, and wakes at once where there are pods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import nsmallest
from math import exp2

from numakin.placement.traffic.graph import MOST_EDGES, Amount, Graph, Key

FADED = 8
"""Half-lives after which traffic without news is forgotten: less than half a percent of it is left."""

REST_S = 14 * 86_400.0
"""Seconds after which a resting edge is forgotten: jobs that run once a week are still known."""

NOTHING = Amount()


class Remembered:
    """One owner. dropped: edges that the cap has cost so far, each once as long as it stays over the cap."""

    def __init__(self, half_life: float) -> None:
        self.dropped = 0
        self._half_life = half_life
        self._most = MOST_EDGES
        self._edges: dict[Key, Amount] = {}
        self._resting: dict[Key, float] = {}
        self._fading: dict[Key, tuple[float, Amount]] = {}
        self._over: set[Key] = set()

    def restored(self, edges: Mapping[Key, Amount], now: float) -> None:
        """With what was written down before; where more is known already, that stays."""
        for key, rate in edges.items():
            self._edges[key] = _most(rate, self._edges.get(key, NOTHING))
            self._resting.setdefault(key, now)

    def after(self, seen: Graph, live: Collection[str], now: float) -> Graph:
        """What is seen now, completed. live: the workloads that have pods."""
        edges: dict[Key, Amount] = {}
        for key in seen.edges.keys() | self._edges.keys():
            awake = key.source in live and key.target in live
            rate = self._awake(key, seen, now) if awake else self._at_rest(key, seen, now)
            if rate is not None:
                edges[key] = rate
        self._edges = edges
        self._shed(seen)
        return Graph(dict(self._edges), seen.costs, seen.dropped)

    def _awake(self, key: Key, seen: Graph, now: float) -> Amount | None:
        shown = seen.edges.get(key, NOTHING)
        if self._resting.pop(key, None) is not None:
            before = self._edges[key]
            missing = Amount(max(0.0, before.bytes - shown.bytes), max(0.0, before.messages - shown.messages))
            if any(missing):
                self._fading[key] = (now, missing)
        since, rate = self._fading.get(key, (now, NOTHING))
        if now - since > FADED * self._half_life:
            del self._fading[key]
        elif any(rate):
            left = exp2((since - now) / self._half_life)
            return shown.plus(rate.times(left))
        return shown if any(shown) else None

    def _at_rest(self, key: Key, seen: Graph, now: float) -> Amount | None:
        since = self._resting.setdefault(key, now)
        self._fading.pop(key, None)
        if now - since > REST_S:
            del self._resting[key]
            return None
        return _most(self._edges.get(key, NOTHING), seen.edges.get(key, NOTHING))

    def _shed(self, seen: Graph) -> None:
        weights: dict[Key, float] = {}
        if len(self._edges) > self._most:
            weights = {key: seen.costs.weight(key.kind, rate) for key, rate in self._edges.items()}
        over = nsmallest(max(0, len(weights) - self._most), weights, key=lambda key: (weights[key], key))
        for key in over:
            del self._edges[key]
            self._resting.pop(key, None)
            self._fading.pop(key, None)
        self.dropped += len(set(over) - self._over)
        self._over = set(over)


def _most(first: Amount, second: Amount) -> Amount:
    return Amount(max(first.bytes, second.bytes), max(first.messages, second.messages))
