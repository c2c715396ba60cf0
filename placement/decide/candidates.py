"""Which sets of NUMA nodes to weigh, one width after the other, narrowest first.

A machine with n NUMA nodes has 2^n sets; the kubelet looks at all of them, and so stops at 8. Here a width has every
set only on machines as small as that; on larger ones, grown from each NUMA node,

  the nearest ones,
  the nearest ones that have what the first one lacks, each its part of it,
  the ones with the most room:

O(n) of each width, O(n^2) in all. Those with the most room show whether a width can hold a demand of one resource at
all, so that the narrowest width is found exactly; the nearer ones are better to have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from placement.model.topology import Machine

SMALL = 8
"""NUMA nodes up to which every set is looked at: the kubelet's own limit (255 sets)."""


def of_width(machine: Machine, usable: Sequence[int], width: int, share: Mapping[int, float]) -> Iterator[int]:
    """The masks to weigh, each once. usable: the NUMA nodes that may be chosen; share: how much of the demand each
    holds.
    """
    if width == 1 or len(usable) <= SMALL:
        for chosen in combinations(usable, width):
            yield sum(1 << node for node in chosen)
        return
    allowed, seen = set(usable), set()
    roomiest = sorted(usable, key=lambda node: -share[node])
    for home in usable:
        nearest = [node for node in machine.outward[home] if node in allowed]
        part = (1.0 - share[home]) / (width - 1)
        able = [node for node in nearest if node == home or share[node] >= part]
        for order in (nearest, able, [home, *(node for node in roomiest if node != home)]):
            mask = sum(1 << node for node in order[:width])
            if len(order) >= width and mask not in seen:
                seen.add(mask)
                yield mask


def narrowest(room: Iterable[int], need: int) -> int:
    """The least number of NUMA nodes whose room, added up, holds the need; one more than there are where none does."""
    if need <= 0:
        return 1
    width = 0
    for width, free in enumerate(sorted((max(0, amount) for amount in room), reverse=True), start=1):
        need -= free
        if need <= 0:
            return width
    return width + 1
