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

from numakin.placement.model.topology import Machine

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


def on_few_sockets(machine: Machine, width: int) -> Iterator[tuple[int, ...]]:
    """The NUMA nodes of each set of as few sockets as a demand needs: the kubelet's option `align-by-socket`.
    No set where a socket has less than one NUMA node, or where that is not known. width: NUMA nodes that the demand
    needs on the empty machine. Beyond SMALL sockets only those nearest to each NUMA node.
    """
    known = {numa_node: sockets for numa_node, sockets in machine.sockets_of.items() if sockets}
    every = frozenset[int]().union(*known.values())
    each = len(known) // len(every) if every else 0
    fewest = -(-width // each) if each else 0
    if not 0 < fewest <= len(every):
        return
    chosen = combinations(sorted(every), fewest) if len(every) <= SMALL else _nearest(machine, fewest)
    for sockets in chosen:
        yield tuple(numa_node for numa_node, own in known.items() if own <= {*sockets})


def _nearest(machine: Machine, count: int) -> Iterator[tuple[int, ...]]:
    """For each NUMA node with CPUs so many sockets, outward from its own."""
    order = (
        dict.fromkeys(socket for other in outward for socket in sorted(machine.sockets_of[other]))
        for outward in machine.outward.values()
    )
    yield from dict.fromkeys(tuple(sorted([*sockets][:count])) for sockets in order)


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
