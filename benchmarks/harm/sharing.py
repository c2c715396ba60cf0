"""How much CPU each pod gets where some may run on a part of the machine alone: max-min fair, weighted by shares.

What the kernel's scheduler comes to in the long run: nobody gets more as long as another one that may run there, and
wants more, has less for its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sharer:
    """wants: CPUs that it would use. weight: of its shares. mask: of the NUMA nodes on whose CPUs it may run."""

    wants: float
    weight: float
    mask: int


def fair(cpus: Mapping[int, float], sharers: Sequence[Sharer]) -> list[float]:
    """The CPUs that each gets. cpus: of each NUMA node, by its id.

    The set of NUMA nodes that is short first, for what can run nowhere else, settles what these get; then the same of
    what is left.
    """
    got = [0.0] * len(sharers)
    left, masks = dict(cpus), {number: sharer.mask for number, sharer in enumerate(sharers)}
    while masks:
        level, tight = min((_level(left, sharers, masks, union), union) for union in _unions(left))
        settled = [number for number, mask in masks.items() if level == float("inf") or not mask & ~tight]
        for number in settled:
            got[number] = min(sharers[number].wants, level * sharers[number].weight)
            del masks[number]
        left = {node: free for node, free in left.items() if not tight >> node & 1}
        masks = {number: mask & ~tight for number, mask in masks.items()}
    return got


def _unions(left: Mapping[int, float]) -> list[int]:
    """The masks of all sets of NUMA nodes: a machine of this benchmark has a few."""
    unions = [0]
    for node in left:
        unions += [union | 1 << node for union in unions]
    return unions[1:]


def _level(left: Mapping[int, float], sharers: Sequence[Sharer], masks: Mapping[int, int], union: int) -> float:
    """What each gets for its weight of those that can run there alone; inf where all get what they want."""
    there = sorted(
        (sharers[number].wants / sharers[number].weight, number) for number, mask in masks.items() if not mask & ~union
    )
    free = sum(cpus for node, cpus in left.items() if union >> node & 1)
    weight = sum(sharers[number].weight for _, number in there)
    for level, number in there:
        if level * weight >= free:
            return free / weight if level * weight > free else level
        free, weight = free - sharers[number].wants, weight - sharers[number].weight
    return float("inf")
