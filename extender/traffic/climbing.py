"""Dividing workloads into groups of high modularity: the share of all traffic inside groups, less what it would be if
the same workloads talked with each other at random. Pure.

It is raised by moving single workloads, then merging whole groups, until nothing gains (Blondel et al., 2008).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from extender.traffic.exchanged import Traffic

STAYS = 0.1
"""Share of its traffic that a workload must gain to leave the group that it was in, or a group to be merged."""

ROUNDS = 32
"""Rounds over all workloads; a few are the rule."""


def climbed(
    traffic: Traffic, start: Mapping[str, str], named: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    """Labels by free workload, from which no move of a workload and no merger of groups gains."""
    labels = {**start, **named}
    theirs, old = set(named.values()), set(before.values())
    for _ in range(ROUNDS):
        moved = _moves(traffic, labels, list(start), before)
        if not (_merged(traffic, labels, theirs, old) or moved):
            break
    return {workload: labels[workload] for workload in start}


def _moves(traffic: Traffic, labels: dict[str, str], free: list[str], before: Mapping[str, str]) -> bool:
    """Moves workloads one by one, each to where it gains most; True when any has moved."""
    sums = traffic.sums(labels)
    changed = False
    for _ in range(ROUNDS):
        moved = False
        for workload in free:
            own = labels[workload]
            best = _best(workload, traffic, labels, sums, least=STAYS if before.get(workload) == own else 1e-9)
            if best != own:
                sums[own] -= traffic.strength[workload]
                sums[best] += traffic.strength[workload]
                labels[workload] = best
                moved = changed = True
        if not moved:
            break
    return changed


def _best(
    workload: str, traffic: Traffic, labels: Mapping[str, str], sums: Mapping[str, float], *, least: float
) -> str:
    """The label under which the workload has most over what chance would give it, as a share of its own traffic; its
    own label unless another has `least` more.
    """
    own, strength = labels[workload], traffic.strength[workload]
    if not strength:
        return own
    drawn: dict[str, float] = defaultdict(float, {own: 0.0, workload: 0.0})
    for peer, weight in traffic.peers[workload].items():
        drawn[labels[peer]] += weight
    merit = {
        label: weight / strength - (sums.get(label, 0.0) - (strength if label == own else 0.0)) / traffic.total
        for label, weight in drawn.items()
    }
    best = min(merit, key=lambda label: (-round(merit[label], 12), label))
    return best if merit[best] - merit[own] > least else own


def _merged(traffic: Traffic, labels: dict[str, str], theirs: set[str], old: set[str]) -> bool:
    """Joins groups that gain by it, but never two of the users' own; True when any were joined."""
    sums = traffic.sums(labels)
    between: dict[tuple[str, str], float] = defaultdict(float)
    for workload, peers in traffic.peers.items():
        for peer, weight in peers.items():
            if labels[workload] < labels[peer]:
                between[labels[workload], labels[peer]] += weight
    gains = {pair: weight - sums[pair[0]] * sums[pair[1]] / traffic.total for pair, weight in between.items()}
    into: dict[str, str] = {}
    for pair in sorted(gains, key=lambda pair: (-gains[pair], pair)):
        # What else would gain is weighed anew in the next round.
        if {*pair} & {*into, *into.values()} or {*pair} <= theirs:
            continue
        least = STAYS * min(sums[label] for label in pair) if {*pair} <= theirs | old else 1e-9 * traffic.total
        if gains[pair] > least:
            target, source = sorted(
                pair, key=lambda label: (label not in theirs, label not in old, -sums[label], label)
            )
            into[source] = target
    for workload, label in labels.items():
        labels[workload] = into.get(label, label)
    return bool(into)
