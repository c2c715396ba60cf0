"""What workloads exchange with each other: the weights that groups are found from. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


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
        for (one, other), weight in sorted(weights.items()):
            if one != other and weight > 0 and one in peers and other in peers:
                peers[one][other] = peers[other][one] = weight
        return cls.of(peers)

    @classmethod
    def of(cls, peers: Mapping[str, Mapping[str, float]]) -> Traffic:
        strength = {one: sum(found.values()) for one, found in peers.items()}
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
                one: {peer: weight for peer, weight in found.items() if peer not in workloads}
                if one not in workloads
                else {}
                for one, found in self.peers.items()
            }
        )

    def sums(self, labels: Mapping[str, str]) -> dict[str, float]:
        """Strength by label."""
        found: dict[str, float] = defaultdict(float)
        for one, label in labels.items():
            found[label] += self.strength[one]
        return found

    def modularity(self, labels: Mapping[str, str]) -> float:
        if not self.total:
            return 0.0
        inside = sum(
            weight
            for one, found in self.peers.items()
            for other, weight in found.items()
            if labels[one] == labels[other]
        )
        return inside / self.total - sum((one / self.total) ** 2 for one in self.sums(labels).values())
