"""Whether the processes' memory and descriptors stay flat over the rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.soak.cluster import Cluster
from tests.soak.invariants import Broken, Invariant
from tests.soak.processes import Footprint, footprint

FEWEST = 12
"""Samples of a role before it is judged: the first quarter against the last."""

MEMORY = 16 << 20
DESCRIPTORS = 4
"""What the last quarter's median may be above the first's."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Medians of the first and of the last quarter of the samples."""

    role: str
    samples: int
    first: Footprint
    last: Footprint


@dataclass(slots=True)
class Growth:
    """One sample of each process a round, when all has settled."""

    _samples: dict[str, list[Footprint]] = field(default_factory=lambda: defaultdict(list))

    def sample(self, cluster: Cluster) -> None:
        roles = [role for node in cluster.nodes for role in node.enforcer.processes().items()]
        for role, pid in [*roles, ("extender", cluster.extender_pid())]:
            if (now := footprint(pid)) is not None:
                self._samples[role].append(now)

    def trends(self) -> list[Trend]:
        return [
            Trend(role, len(samples), _middle(samples[:quarter]), _middle(samples[-quarter:]))
            for role, samples in sorted(self._samples.items())
            if (quarter := max(1, len(samples) // 4))
        ]

    def broken(self) -> Iterator[Broken]:
        for trend in self.trends():
            if trend.samples < FEWEST:
                continue
            more = trend.last.descriptors - trend.first.descriptors
            grown = trend.last.resident - trend.first.resident
            if more > DESCRIPTORS:
                yield Broken(Invariant.GROWN, f"{trend.role}: {more} more descriptors than in the first rounds")
            if grown > MEMORY:
                yield Broken(Invariant.GROWN, f"{trend.role}: {grown >> 20} MiB more than in the first rounds")


def _middle(samples: Sequence[Footprint]) -> Footprint:
    return Footprint(
        int(median(sample.resident for sample in samples)), int(median(sample.descriptors for sample in samples))
    )
