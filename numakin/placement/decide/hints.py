"""The topology manager's hints and their merge, for any number of NUMA nodes.

In the kubelet each provider lists every set of NUMA nodes on which its resource is available, and calls those preferred
that are as narrow as the machine's capacity allows, were it empty. The merge takes one hint of each provider, in every
combination, and intersects them; the result is preferred when all of the combination are, and are the same set (since
Kubernetes 1.20).

That needs no combinations: there is a preferred result just when every provider's narrowest width is the same, and all
needs of all providers are available on one set of that width.

With the option align-by-socket hints of CPUs are also preferred, however wide, on as few sockets as their narrowest
width needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from numakin.placement.decide.candidates import SMALL, narrowest


@dataclass(frozen=True, slots=True)
class Need:
    """An amount of one resource, with what each NUMA node has of it at all, and has free. Absent: nothing."""

    name: str
    amount: int
    capacity: Mapping[int, int]
    available: Mapping[int, int]


Groups = Callable[[int], Iterable[Sequence[int]]]
"""The NUMA nodes of each set of as few sockets as so many NUMA nodes need."""

Provider = tuple[Need, ...]
"""Needs that are met on one and the same set: they get one hint."""


def preferred(
    providers: Sequence[Provider], nodes: Sequence[int], *, single: bool = False, sockets: Groups | None = None
) -> bool:
    """Whether there is a preferred merged hint; so there is without any need.

    single: only hints of one NUMA node count, as the policy single-numa-node has it. sockets: the first provider is
    aligned by socket, which that policy excludes.
    """
    if sockets is not None and not single and _on_few_sockets(providers, nodes, sockets):
        return True
    requested = [needs for provider in providers if (needs := tuple(need for need in provider if need.amount > 0))]
    widths = {_width(needs, nodes) for needs in requested}
    if not widths:
        return True
    if len(widths) > 1 or 0 in widths or (single and widths != {1}):
        return False
    (width,), needs = widths, tuple(need for each in requested for need in each)
    return any(_covered(needs, chosen, of_capacity=False) for chosen in _sets(needs, nodes, width, of_capacity=False))


def _on_few_sockets(providers: Sequence[Provider], nodes: Sequence[int], sockets: Groups) -> bool:
    """Whether all needs of all providers are available on one set of as few sockets as the first one's need; of the
    others' width, where they have one.
    """
    asked = [tuple(need for need in provider if need.amount > 0) for provider in providers]
    if not asked or not asked[0]:
        return False
    needs = tuple(need for each in asked for need in each)
    widths, least = {_width(each, nodes) for each in asked[1:] if each}, _width(asked[0], nodes)
    if not least or len(widths) > 1:
        return False
    for group in sockets(least):
        width = next(iter(widths), len(group))
        if 0 < width <= len(group) and any(
            _covered(needs, chosen, of_capacity=False) for chosen in _sets(needs, group, width, of_capacity=False)
        ):
            return True
    return False


def narrowest_width(provider: Provider, nodes: Sequence[int]) -> int:
    """The fewest NUMA nodes whose capacity covers what it asks for; 0 when the whole machine's does not, or when
    nothing is asked for.
    """
    needs = tuple(need for need in provider if need.amount > 0)
    return _width(needs, nodes) if needs else 0


def _width(needs: Provider, nodes: Sequence[int]) -> int:
    """The fewest NUMA nodes whose capacity covers the needs; 0 when the whole machine's does not."""
    able = [node for node in nodes if any(need.capacity.get(node, 0) > 0 for need in needs)]
    if not _covered(needs, able, of_capacity=True):
        return 0
    least = max(narrowest(need.capacity.values(), need.amount) for need in needs)
    for width in range(least, len(able) + 1):
        if any(_covered(needs, chosen, of_capacity=True) for chosen in _sets(needs, able, width, of_capacity=True)):
            return width
    return 0


def _sets(needs: Provider, nodes: Sequence[int], width: int, *, of_capacity: bool) -> Iterable[Sequence[int]]:
    if width <= 2 or len(nodes) <= SMALL:
        return combinations(nodes, width)
    tables = [(need.capacity if of_capacity else need.available, need.amount) for need in needs]
    roomiest = sorted(nodes, key=lambda node: -min(table.get(node, 0) / amount for table, amount in tables))
    return ([home, *[node for node in roomiest if node != home][: width - 1]] for home in nodes)


def _covered(needs: Provider, chosen: Iterable[int], *, of_capacity: bool) -> bool:
    nodes = tuple(chosen)
    return all(
        sum((need.capacity if of_capacity else need.available).get(node, 0) for node in nodes) >= need.amount
        for need in needs
    )
