"""Which CPUs become a container's own.

On each NUMA node no more than what its shared pool can spare. Last-level caches first: the one where most of the kin
have their exclusive CPUs, if it holds all that is wanted; of several such the fullest, so that large holes stay whole.
Then whole cores, and for an odd rest a thread of a core that is in use already: a fresh core is not broken for one
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from placement.model.cpuset import CpuSet
from placement.model.topology import Machine

CacheWeight = Callable[[int], float]
"""How much of the kin weight has its exclusive CPUs within a cache, by the cache's mask."""


def most(machine: Machine, numa_node: int, free: int, budget: int, *, whole_cores: bool) -> int:
    """How many CPUs of one NUMA node a container could own. free: mask; budget: CPUs that the shared pool can spare."""
    if not whole_cores:
        return min(free.bit_count(), max(0, budget))
    count = 0
    for core in machine.cores_by_node[numa_node]:
        size = core.bit_count()
        if core & free == core and count + size <= budget:
            count += size
    return count


def pick(
    machine: Machine, room: Mapping[int, tuple[int, int]], wanted: int, kin: CacheWeight, *, whole_cores: bool
) -> CpuSet:
    """The CPUs, of whole cores as many more as it takes; empty when there are not enough.

    room: for each NUMA node of the home, the mask of its free CPUs and how many of them may be taken.
    """
    able = {
        numa_node: most(machine, numa_node, free, budget, whole_cores=whole_cores)
        for numa_node, (free, budget) in room.items()
    }
    taken = 0
    for numa_node in sorted(room, key=lambda node: (-able[node], node)):
        free, budget = room[numa_node]
        still = min(wanted - taken.bit_count(), budget)
        if still <= 0:
            continue
        cores = machine.cores_by_node[numa_node]
        caches = _caches(machine.caches_by_node[numa_node], free, still, kin)
        if whole_cores:
            taken |= _whole_cores(caches, cores, free, still, budget)
        else:
            taken |= _threads(caches, cores, free, still)
    return CpuSet(taken) if taken.bit_count() >= wanted else CpuSet()


def _caches(caches: Sequence[int], free: int, wanted: int, kin: CacheWeight) -> list[int]:
    """Those that hold everything first, kin before strangers, then the tightest fit or else the fullest."""
    if len(caches) == 1:
        return [*caches]

    def order(cache: int) -> tuple[bool, float, int, int]:
        count = (cache & free).bit_count()
        holds = count >= wanted
        return not holds, -round(kin(cache), 9), count if holds else -count, cache & -cache

    return sorted(caches, key=order)


def _whole_cores(caches: Sequence[int], cores: Sequence[int], free: int, wanted: int, budget: int) -> int:
    taken = 0
    for core in (core for cache in caches for core in cores if core & cache):
        if taken.bit_count() >= wanted:
            break
        if core & free == core and taken.bit_count() + core.bit_count() <= budget:
            taken |= core
    return taken


def _threads(caches: Sequence[int], cores: Sequence[int], free: int, wanted: int) -> int:
    """Cache by cache: cores that are wanted whole, then single threads, of cores that are in use already first."""
    taken = 0
    for cache in caches:
        here = [core for core in cores if core & cache & free]
        for core in here:
            if core & free == core and taken.bit_count() + core.bit_count() <= wanted:
                taken |= core
        for core in sorted(here, key=lambda core: (core & free == core, core & -core)):
            left = core & free & ~taken
            while left and taken.bit_count() < wanted:
                taken |= left & -left
                left &= left - 1
    return taken
