"""What workloads are expected to exchange of which no traffic was seen, as not all of it is seen: the one rule by which
both halves plan.

A workload of which no peer was seen is expected to talk as the others of its namespace and group do: with those
that talk most, by how much each of them talks. Without that a plan has nothing to place it by, and it lands wherever
room is left, as often as not away from the peer whose traffic was missed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import nlargest
from statistics import median

SHARE = 0.5
"""Of what the median workload of its namespace and group exchanges in all, that a silent one is expected to."""

MOST_PEERS = 16
"""Workloads that a silent one is expected to talk with; in large groups only those that talk most."""

Pair = tuple[str, str]


def with_silent(weights: Mapping[Pair, float], groups: Mapping[str, str]) -> dict[Pair, float]:
    """The weights with what is expected of the silent."""
    return {**weights, **expected(weights, groups)}


def expected(weights: Mapping[Pair, float], groups: Mapping[str, str]) -> dict[Pair, float]:
    """Weights by pair, ends in ascending order, of what is expected of the silent. weights: of the pairs that were
    seen. groups: of each workload, NAMESPACE/KIND/NAME, the group that it names; empty: none.
    """
    circles = {name: (name.partition("/")[0], group) for name, group in groups.items()}
    talk: dict[str, float] = defaultdict(float)
    for pair, weight in weights.items():
        for end in {*pair}:
            talk[end] += weight
    talking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sorted(circles):
        if talk.get(name, 0.0) > 0:
            talking[circles[name]].append(name)
    pairs: dict[Pair, float] = {}
    silent = sorted(circles.keys() - {name for names in talking.values() for name in names})
    drawn = {circle: _drawn(talk, talking[circle]) for circle in {circles[name] for name in silent} & talking.keys()}
    for name in silent:
        pairs |= {(min(name, peer), max(name, peer)): weight for peer, weight in drawn.get(circles[name], {}).items()}
    return pairs


def _drawn(talk: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """What a silent one is expected to exchange with each of its peers. names: of its circle, those that talk."""
    peers = nlargest(MOST_PEERS, names, key=lambda peer: (talk[peer], peer))
    usual, total = median(talk[peer] for peer in names), sum(talk[peer] for peer in peers)
    return {peer: SHARE * usual * talk[peer] / total for peer in peers}
