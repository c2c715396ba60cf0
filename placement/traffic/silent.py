"""What workloads are expected to exchange of which no traffic was seen: nobody sees all of it.

A workload that nobody was seen to talk with is expected to talk as the others of its circle do (its namespace's, of the
same group): with those that talk most, by how much each of them talks. Without that a plan has nothing to place it by,
and it lands wherever room is left, as often as not away from the peer whose traffic was missed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from heapq import nlargest
from statistics import median

SHARE = 0.5
"""Of what its circle's median workload exchanges in all, that a silent one is expected to."""

MOST_PEERS = 16
"""Workloads that a silent one is expected to talk with; in large circles only those that talk most."""

Pair = tuple[str, str]


def expected(weights: Mapping[Pair, float], circles: Mapping[str, Hashable]) -> dict[Pair, float]:
    """Weights by pair, ends in ascending order, of what is expected of the silent. weights: of the pairs that were
    seen. circles: of each workload what it belongs to.
    """
    talk: dict[str, float] = defaultdict(float)
    for pair, weight in weights.items():
        for end in {*pair}:
            talk[end] += weight
    talking: dict[Hashable, list[str]] = defaultdict(list)
    for name in sorted(circles):
        if talk.get(name, 0.0) > 0:
            talking[circles[name]].append(name)
    pairs: dict[Pair, float] = {}
    for name in sorted(circles.keys() - {name for names in talking.values() for name in names}):
        names = talking.get(circles[name])
        if names:
            peers = nlargest(MOST_PEERS, names, key=lambda peer: (talk[peer], peer))
            usual, total = median(talk[peer] for peer in names), sum(talk[peer] for peer in peers)
            pairs |= {(min(name, peer), max(name, peer)): SHARE * usual * talk[peer] / total for peer in peers}
    return pairs
