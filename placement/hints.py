"""The topology manager's hints and their merge, for any number of NUMA nodes.

In the kubelet each provider (CPU, memory with hugepages, each kind of device) lists every set of NUMA nodes on which
its resource is available, and calls those preferred that are as narrow as the machine's capacity allows, were it
empty. The merge intersects one hint of each provider, in every combination; the result is preferred when a
combination of preferred hints has a NUMA node in common.

That last sentence needs no combinations: it holds just when some NUMA node lies, for every provider, in an available
set of that provider's narrowest width. So the merge is a walk over NUMA nodes, and for one of them the best set of a
given width that holds it is it and the roomiest others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from placement.candidates import SMALL
from placement.cpuset import NumaSet


@dataclass(frozen=True, slots=True)
class Need:
    """An amount of one resource, with what each NUMA node has of it at all, and has free. Absent: nothing."""

    name: str
    amount: int
    capacity: Mapping[int, int]
    available: Mapping[int, int]


Provider = tuple[Need, ...]
"""Needs that are met on one and the same set: the memory manager gives memory and hugepages one hint."""


def preferred_nodes(providers: Iterable[Provider], nodes: Iterable[int], *, single: bool = False) -> NumaSet:
    """The NUMA nodes that a preferred merged hint can hold; empty: no preferred hint. All of them without any need.

    single: only hints of one NUMA node count, as the policy single-numa-node has it.
    """
    found = set(nodes)
    for provider in providers:
        needs = tuple(need for need in provider if need.amount > 0)
        if needs:
            able = sorted({one for need in needs for one, amount in need.capacity.items() if amount > 0})
            width = _width(needs, able)
            found &= _reached(needs, able, width) if width == 1 or not single else set()
    return NumaSet.of(found)


def _width(needs: Provider, nodes: Sequence[int]) -> int:
    """The fewest NUMA nodes whose capacity covers the needs; 0 when the whole machine's does not."""
    for width in range(1, len(nodes) + 1):
        if any(_covered(needs, chosen, of_capacity=True) for chosen in _sets(needs, nodes, width, of_capacity=True)):
            return width
    return 0


def _reached(needs: Provider, nodes: Sequence[int], width: int) -> set[int]:
    """The NUMA nodes in any set of that width on which the needs are available."""
    if not width:
        return set()
    sets = _sets(needs, nodes, width, of_capacity=False)
    return {one for chosen in sets if _covered(needs, chosen, of_capacity=False) for one in chosen}


def _sets(needs: Provider, nodes: Sequence[int], width: int, *, of_capacity: bool) -> Iterable[Sequence[int]]:
    if width <= 2 or len(nodes) <= SMALL:
        return combinations(nodes, width)
    tables = [(need.capacity if of_capacity else need.available, need.amount) for need in needs]
    roomiest = sorted(nodes, key=lambda one: -min(table.get(one, 0) / amount for table, amount in tables))
    return ([home, *[one for one in roomiest if one != home][: width - 1]] for home in nodes)


def _covered(needs: Provider, chosen: Iterable[int], *, of_capacity: bool) -> bool:
    nodes = tuple(chosen)
    return all(
        sum((need.capacity if of_capacity else need.available).get(one, 0) for one in nodes) >= need.amount
        for need in needs
    )
