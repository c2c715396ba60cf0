"""Which CPUs become a container's own.

On each NUMA node no more than what its shared pool can spare; of several NUMA nodes each is filled before the next, or
all get the same, as the operator has it. Last-level caches first: of those that hold all that is still wanted, one
that leaves its members what they ask for, then the one where most of the kin have their exclusive CPUs or are kept; of
several such the fullest, so that large holes stay whole. Then whole cores, and for an odd rest a thread of a core that
is in use already: a fresh core is not broken for one thread. Or, as the operator has it, a thread of each core before a
second one of any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine


@dataclass(frozen=True, slots=True)
class Caches:
    """Figures of a cache, by its mask. kin: how much of the kin weight has its exclusive CPUs within it, or is kept
    within it. asked: CPUs that the members kept within it ask for.
    """

    kin: Callable[[int], float]
    asked: Callable[[int], float]


def suits(machine: Machine, own: CpuSet, wanted: int, *, whole_cores: bool) -> bool:
    """Whether a container's own CPUs are as many as are wanted; whole cores, of which none is one too many."""
    if not whole_cores:
        return len(own) == wanted
    cores = {machine.core_of(cpu) for cpu in own}
    whole = all(core <= own for core in cores)
    return whole and len(own) >= wanted > len(own) - min((len(core) for core in cores), default=0)


def taken(machine: Machine, wanted: int, *, whole_cores: bool) -> int:
    """The most CPUs that a container which wants so many is given: whole cores take their siblings too."""
    sizes = machine.core_sizes
    fewest = least(machine, wanted, whole_cores=whole_cores)
    return wanted + max(sizes) - 1 if whole_cores and len(sizes) > 1 else fewest


def least(machine: Machine, wanted: int, *, whole_cores: bool) -> int:
    """The fewest CPUs that it is given; cores of several sizes may be just as many."""
    sizes = machine.core_sizes
    size = max(sizes) if whole_cores and len(sizes) == 1 else 1
    return -(-wanted // size) * size


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
    machine: Machine,
    room: Mapping[int, tuple[int, int]],
    wanted: int,
    caches: Caches,
    *,
    whole_cores: bool,
    evenly: bool = False,
    spread: bool = False,
) -> CpuSet:
    """The CPUs, of whole cores as many more as it takes; empty when there are not enough.

    room: for each NUMA node of the home, the mask of its free CPUs and how many of them may be taken. evenly: from each
    as many as from the others, as far as they have them. spread: over as many cores of a NUMA node as it has.
    """
    able = {
        numa_node: most(machine, numa_node, free, budget, whole_cores=whole_cores)
        for numa_node, (free, budget) in room.items()
    }
    share = _even(machine, able, wanted, whole_cores=whole_cores) if evenly and len(room) > 1 else able
    taken = 0
    for numa_node in sorted(room, key=lambda node: (-able[node], node)):
        free, budget = room[numa_node]
        still = min(wanted - taken.bit_count(), share[numa_node])
        if still > 0:
            if spread and not whole_cores:
                first = _first_threads(machine, numa_node, free)
                taken |= _of_node(machine, numa_node, (first, budget), min(still, first.bit_count()), caches)
                free, still = free & ~taken, max(0, still - first.bit_count())
            taken |= _of_node(machine, numa_node, (free, budget), still, caches, whole_cores=whole_cores)
    return CpuSet(taken) if taken.bit_count() >= wanted else CpuSet()


def _even(machine: Machine, able: Mapping[int, int], wanted: int, *, whole_cores: bool) -> dict[int, int]:
    """How many CPUs of each NUMA node: a core, or a CPU, in turn of the one that gives least so far, the roomiest
    first.
    """
    share = dict.fromkeys(able, 0)
    while sum(share.values()) < wanted:
        giving = [numa_node for numa_node in able if share[numa_node] < able[numa_node]]
        if not giving:
            break
        least = min(giving, key=lambda numa_node: (share[numa_node], -able[numa_node], numa_node))
        share[least] += _core_size(machine, least) if whole_cores else 1
    return share


def _core_size(machine: Machine, numa_node: int) -> int:
    return max((core.bit_count() for core in machine.cores_by_node[numa_node]), default=1)


def _first_threads(machine: Machine, numa_node: int, free: int) -> int:
    """The mask of one free CPU of each core."""
    here = (core & free for core in machine.cores_by_node[numa_node])
    return sum(core & -core for core in here)


def _of_node(
    machine: Machine, numa_node: int, room: tuple[int, int], wanted: int, caches: Caches, *, whole_cores: bool = False
) -> int:
    """The mask of those of one NUMA node: cache by cache, the next by what is still wanted."""
    cores, left = machine.cores_by_node[numa_node], [*machine.caches_by_node[numa_node]]
    free, budget = room
    taken = 0
    while left and (still := wanted - taken.bit_count()) > 0:
        cache = _next_cache(left, free, still, caches)
        left.remove(cache)
        here = [core for core in cores if core & cache]
        if whole_cores:
            taken |= _whole_cores(here, free, still, budget - taken.bit_count())
        else:
            taken |= _threads(here, cache & free, still)
    return taken


def _next_cache(left: Sequence[int], free: int, wanted: int, caches: Caches) -> int:
    """One that holds everything first, and its members still, kin before strangers, then the tightest fit or else the
    fullest.
    """
    if len(left) == 1:
        return left[0]

    def order(cache: int) -> tuple[bool, bool, float, int, int]:
        count = (cache & free).bit_count()
        holds = count >= wanted
        crowds = caches.asked(cache) > max(0, count - wanted)
        return not holds, crowds, -round(caches.kin(cache), 9), count if holds else -count, cache & -cache

    return min(left, key=order)


def _whole_cores(cores: Sequence[int], free: int, wanted: int, budget: int) -> int:
    taken = 0
    for core in cores:
        if taken.bit_count() >= wanted:
            break
        if core & free == core and taken.bit_count() + core.bit_count() <= budget:
            taken |= core
    return taken


def _threads(cores: Sequence[int], free: int, wanted: int) -> int:
    """Cores that are wanted whole, then single threads, of cores that are in use already first."""
    taken = 0
    for core in cores:
        if core & free == core and taken.bit_count() + core.bit_count() <= wanted:
            taken |= core
    for core in sorted(cores, key=lambda core: (core & free == core, core & -core)):
        left = core & free & ~taken
        while left and taken.bit_count() < wanted:
            taken |= left & -left
            left &= left - 1
    return taken
