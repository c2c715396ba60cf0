"""What workloads exchange with each other: the weights that groups are found from. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


def namespace_of(name: str) -> str:
    """Of a workload, NAMESPACE/KIND/NAME, or a group, NAMESPACE/name."""
    return name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Weights by workload and peer, both ways; strength: of a workload with all peers; total: of all workloads."""

    peers: Mapping[str, Mapping[str, float]]
    strength: Mapping[str, float]
    total: float

    @classmethod
    def among(cls, workloads: set[str], weights: Mapping[tuple[str, str], float]) -> Traffic:
        """Only traffic between different workloads joins them."""
        peers: dict[str, dict[str, float]] = {workload: {} for workload in sorted(workloads)}
        for (first, second), weight in sorted(weights.items()):
            if first != second and weight > 0 and first in peers and second in peers:
                peers[first][second] = peers[second][first] = weight
        return cls.of(peers)

    @classmethod
    def of(cls, peers: Mapping[str, Mapping[str, float]]) -> Traffic:
        strength = {workload: sum(weights.values()) for workload, weights in peers.items()}
        return cls(peers, strength, sum(strength.values()))

    def within(self, workloads: set[str]) -> Traffic:
        """As if there were only these."""
        return self.of(
            {
                workload: {peer: weight for peer, weight in self.peers[workload].items() if peer in workloads}
                for workload in sorted(workloads)
            }
        )

    def without(self, workloads: AbstractSet[str]) -> Traffic:
        """As if these exchanged nothing."""
        if not workloads & self.peers.keys():
            return self
        return self.of(
            {
                workload: {peer: weight for peer, weight in weights.items() if peer not in workloads}
                if workload not in workloads
                else {}
                for workload, weights in self.peers.items()
            }
        )

    def sums(self, labels: Mapping[str, str]) -> dict[str, float]:
        """Strength by label."""
        strengths: dict[str, float] = defaultdict(float)
        for workload, label in labels.items():
            strengths[label] += self.strength[workload]
        return strengths

    def modularity(self, labels: Mapping[str, str]) -> float:
        if not self.total:
            return 0.0
        inside = sum(
            weight
            for workload, weights in self.peers.items()
            for peer, weight in weights.items()
            if labels[workload] == labels[peer]
        )
        return inside / self.total - sum((strength / self.total) ** 2 for strength in self.sums(labels).values())
