"""podAffinity by group over host names, as kube-scheduler's plugin weighs it: what an operator would write first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

WEIGHT = 2
"""Of InterPodAffinity among the default plugins; a term of its own weighs up to 100, and only its sum is scaled."""


class PodAffinity:
    """In the scheduler's place for an extender. required: the rule must hold; else it is only preferred."""

    def __init__(self, *, required: bool) -> None:
        self._required = required
        self._pods: dict[str, Counter[str]] = defaultdict(Counter)

    def bound(self, group: str, node: str) -> None:
        """A pod of the group is on that node from now on."""
        self._pods[group][node] += 1

    def filter(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> list[str]:
        """The first pod of a group may go anywhere, the others where one is."""
        there = self._pods[pod["group"]]
        return [node for node in nodes if there[node]] if self._required and there else list(nodes)

    def prioritize(self, pod: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, int]:
        """0 to 10, between the fewest and the most pods of the group."""
        counts = {node: self._pods[pod["group"]][node] for node in nodes}
        least, most = min(counts.values()), max(counts.values())
        return {node: round(10 * (count - least) / max(1, most - least)) for node, count in counts.items()}
