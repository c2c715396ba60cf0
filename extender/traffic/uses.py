"""What pods of each workload use of the CPU, as the nodes report it: the most that any of them saw lately.

A node's figure holds until it sends another; one that is silent about a workload for `FRESH_S` does not count any more
while other nodes speak of it. The last figure of a workload stays while it is remembered, so that pods which come back
are counted as what they were.
"""

from __future__ import annotations

from collections.abc import Mapping

FRESH_S = 1_800.0
"""Seconds: an enforcer sends all that it knows every ten minutes."""

REST_S = 14 * 86_400.0
"""Seconds after which a figure that no node has renewed is forgotten, as a resting edge of the graph is."""

MOST_WORKLOADS = 20_000
"""Those that were not spoken of for longest go first."""

MOST_NODES = 16
"""Of one workload, the latest that spoke of it."""

WRITTEN_DOWN = ""
"""In the place of a node's name: what an extender before this one wrote down."""


class WorkloadUses:
    """One owner. Millicores of one pod, by workload. Times are seconds of any clock that never runs backwards."""

    def __init__(self) -> None:
        self._figures: dict[str, dict[str, tuple[int, float]]] = {}

    def reported(self, node: str, uses: Mapping[str, int], now: float) -> None:
        for workload, milli in uses.items():
            figures = self._figures.pop(workload, {})
            figures.pop(node, None)
            figures.pop(WRITTEN_DOWN, None)
            self._figures[workload] = {**dict([*figures.items()][1 - MOST_NODES :]), node: (milli, now)}
        while len(self._figures) > MOST_WORKLOADS:
            del self._figures[next(iter(self._figures))]

    def restored(self, uses: Mapping[str, int], now: float) -> None:
        """What is known already stays."""
        self.reported(WRITTEN_DOWN, {name: milli for name, milli in uses.items() if name not in self._figures}, now)

    def known(self, now: float) -> dict[str, int]:
        for workload in [*self._figures]:
            left = _left(self._figures[workload], now)
            if left:
                self._figures[workload] = left
            else:
                del self._figures[workload]
        return {workload: max(milli for milli, _ in figures.values()) for workload, figures in self._figures.items()}


def _left(figures: Mapping[str, tuple[int, float]], now: float) -> dict[str, tuple[int, float]]:
    fresh = {node: (milli, at) for node, (milli, at) in figures.items() if now - at <= FRESH_S}
    if fresh:
        return fresh
    node, (milli, at) = max(figures.items(), key=lambda entry: entry[1][1])
    return {node: (milli, at)} if now - at <= REST_S else {}
