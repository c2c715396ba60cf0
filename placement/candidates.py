"""Which sets of NUMA nodes to weigh, one width after the other, narrowest first.

A machine with n NUMA nodes has 2^n sets; the kubelet looks at all of them, and so stops at 8. Here a width has

  every NUMA node by itself, and every pair;
  every set, on machines as small as the kubelet's;
  else, grown from each NUMA node, the set of the nearest ones and the set of those with the most room:

O(n) of each width, O(n^2) in all. The set with the most room is what tells whether a width can hold a demand of one
resource at all, so that the narrowest width is found exactly; the set of the nearest is the one that is best to have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from placement.topology import Machine

SMALL = 8
"""NUMA nodes up to which every set is looked at: the kubelet's own limit (255 sets)."""


def of_width(machine: Machine, usable: list[int], width: int, room: Mapping[int, int]) -> Iterator[int]:
    """The masks to weigh, each once. usable: the NUMA nodes that may be chosen; room: what the width is short of."""
    if width <= 2 or len(usable) <= SMALL:
        for chosen in combinations(usable, width):
            yield sum(1 << one for one in chosen)
        return
    allowed, seen = set(usable), set()
    roomiest = sorted(usable, key=lambda one: -room[one])
    for home in usable:
        nearest = [one for one in machine.outward[home] if one in allowed]
        for order in (nearest, [home, *(one for one in roomiest if one != home)]):
            mask = sum(1 << one for one in order[:width])
            if mask not in seen:
                seen.add(mask)
                yield mask


def narrowest(usable: list[int], room: Mapping[int, int], need: int) -> int:
    """The least width at which the roomiest NUMA nodes hold the need; one more than there are, where none does."""
    if need <= 0:
        return 1
    for width, free in enumerate(sorted((max(0, room[one]) for one in usable), reverse=True), start=1):
        need -= free
        if need <= 0:
            return width
    return len(usable) + 1
