"""The kubelet's topology manager by its own rules (policy.go of Kubernetes 1.20 to 1.34), over every combination: what
ours is held against.

Hints: for each provider every set of NUMA nodes on which its needs are available, preferred where it is as narrow as the
narrowest whose capacity covers them; one hint without a set, preferred, for a provider that asks for nothing, and one,
not preferred, for one that has no set. Merge: each combination of one hint each; its sets intersected; preferred when
every hint is and their sets are all the same. single-numa-node sees preferred hints of one NUMA node, or of no set,
alone. Of several preferred results the narrowest wins, then the one of the lowest NUMA nodes.

With align-by-socket (Kubernetes 1.25 and later, `policy_static.go`) a hint of CPUs is also preferred when it spans just as
many sockets as its narrowest width needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

from numakin.placement.decide.hints import Need, Provider

Hint = tuple[frozenset[int] | None, bool]
"""A set of NUMA nodes (None: no opinion), and whether it is preferred."""


Sockets = Mapping[int, int]
"""The socket of each NUMA node."""


def hints(provider: Provider, nodes: Sequence[int], sockets: Sockets | None = None) -> list[Hint]:
    """sockets: CPUs, aligned by socket."""
    needs = [need for need in provider if need.amount > 0]
    if not needs:
        return [(None, True)]
    sets = [frozenset(combination) for width in range(1, len(nodes) + 1) for combination in combinations(nodes, width)]
    able = [entry for entry in sets if all(_sum(need.capacity, entry) >= need.amount for need in needs)]
    least = min(map(len, able), default=0)
    free = [entry for entry in able if all(_sum(need.available, entry) >= need.amount for need in needs)]
    return [(entry, len(entry) == least or _aligned(entry, least, sockets)) for entry in free] or [(None, False)]


def _aligned(entry: frozenset[int], least: int, sockets: Sockets | None) -> bool:
    if not sockets:
        return False
    each = len(sockets) // len({*sockets.values()})
    return bool(each) and len({sockets[node] for node in entry}) == -(-least // each)


def _sum(table, nodes: Iterable[int]) -> int:
    return sum(table.get(node, 0) for node in nodes)


def merged(
    providers: Sequence[Provider], nodes: Sequence[int], *, single: bool = False, sockets: Sockets | None = None
) -> Hint:
    """The best preferred result; (None, False): there is none. sockets: the first provider is aligned by socket."""
    lists = [hints(provider, nodes, sockets if at == 0 else None) for at, provider in enumerate(providers)]
    if single:
        lists = [[entry for entry in each if entry[1] and (entry[0] is None or len(entry[0]) == 1)] for each in lists]
    everything = frozenset(nodes)
    actual = []
    for chosen in product(*lists):
        sets = [entry for entry, _ in chosen if entry is not None]
        result = everything.intersection(*sets)
        if result and all(preferred for _, preferred in chosen) and all(entry == sets[0] for entry in sets):
            actual.append(result)
    return (min(actual, key=lambda entry: (len(entry), sorted(entry))), True) if actual else (None, False)


def admits(policy: str, providers: Sequence[Provider], nodes: Sequence[int]) -> bool:
    if policy in {"none", "best-effort"}:
        return True
    return merged(providers, nodes, single=policy == "single-numa-node")[1]


__all__ = ["Need", "admits", "hints", "merged"]
