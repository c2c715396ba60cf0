"""The kubelet's topology manager as it is documented, by brute force over every set: what ours is held against.

Hints: for each provider every set of NUMA nodes on which its needs are available, preferred where it is as narrow as the
narrowest whose capacity covers them. Merge: every combination of one hint each, intersected; preferred before not,
then, among preferred, the narrower. The policy single-numa-node keeps preferred hints of one NUMA node only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product

from placement.hints import Need, Provider

Hint = tuple[frozenset[int] | None, bool]
"""A set of NUMA nodes (None: no opinion), and whether it is preferred."""


def hints(provider: Provider, nodes: Sequence[int]) -> list[Hint]:
    needs = [need for need in provider if need.amount > 0]
    if not needs:
        return [(None, True)]
    sets = [frozenset(one) for width in range(1, len(nodes) + 1) for one in combinations(nodes, width)]
    able = [one for one in sets if all(_sum(need.capacity, one) >= need.amount for need in needs)]
    least = min(map(len, able), default=len(nodes) + 1)
    free = [one for one in able if all(_sum(need.available, one) >= need.amount for need in needs)]
    return [(one, len(one) == least) for one in free]


def _sum(table, nodes: Iterable[int]) -> int:
    return sum(table.get(one, 0) for one in nodes)


def merged(providers: Sequence[Provider], nodes: Sequence[int], *, single: bool = False) -> Hint:
    """The best merged hint. (None, False): some provider has none at all."""
    lists = [hints(provider, nodes) for provider in providers]
    if single:
        lists = [[one for one in each if one[1] and (one[0] is None or len(one[0]) == 1)] for each in lists]
    if not all(lists):
        return None, False
    everything = frozenset(nodes)
    best: Hint = (everything, False)
    for chosen in product(*lists):
        mask = everything
        for one, _ in chosen:
            mask &= everything if one is None else one
        preferred = all(each for _, each in chosen)
        if not mask:
            continue
        if (preferred, -len(mask), [-one for one in sorted(mask)]) > (
            best[1],
            -len(best[0] or everything),
            [-one for one in sorted(best[0] or everything)],
        ):
            best = (mask, preferred)
    return best


def admits(policy: str, providers: Sequence[Provider], nodes: Sequence[int]) -> bool:
    if policy in {"none", "best-effort"}:
        return True
    return merged(providers, nodes, single=policy == "single-numa-node")[1]


__all__ = ["Need", "admits", "hints", "merged"]
