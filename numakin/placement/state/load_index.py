"""What an occupancy adds up to, carried from one occupancy to the next rather than counted anew.

A decision among hundreds of containers must not look at each of them: a `Directory` finds reservations and allocations
by what they belong to, a `Load` holds sums by NUMA node. All sums are integers, so that taking away restores exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeVar

from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Pool
from numakin.placement.state.allocations import Allocation, Part, Reservation, as_one

_Row = TypeVar("_Row", str, int)
_Column = TypeVar("_Column", str, int)


class NodeLoad(NamedTuple):
    """What one NUMA node carries: CPU requested in millicores, bytes requested, bytes that bound reservations may use,
    reservations, and CPU that is expected to be used where that is more than the request.
    """

    cpu: int = 0
    memory: int = 0
    committed: int = 0
    reservations: int = 0
    expected: int = 0


EMPTY = NodeLoad()

WIDE = -1
"""In the place of a NUMA node's id: on several of them."""


@dataclass(frozen=True, slots=True)
class Load:
    """Sums by NUMA node, and by (NUMA node, page size) for hugepages, in bytes. Absent: nothing."""

    rows: Mapping[int, NodeLoad] = field(default_factory=dict)
    hugepages: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def plus(self, other: Load, sign: int = 1) -> Load:
        """With the other's sums added (or, with sign -1, taken away)."""
        rows = dict(self.rows)
        for numa_node, (cpu, memory, committed, reservations, expected) in other.rows.items():
            mine = rows.get(numa_node, EMPTY)
            rows[numa_node] = NodeLoad(
                mine.cpu + sign * cpu,
                mine.memory + sign * memory,
                mine.committed + sign * committed,
                mine.reservations + sign * reservations,
                mine.expected + sign * expected,
            )
        pages = self.hugepages
        if other.hugepages:
            pages = {**pages, **{key: pages.get(key, 0) + sign * more for key, more in other.hugepages.items()}}
        return Load(rows, pages)


NOTHING = Load()


def load_of(machine: Machine, reservation: Reservation | None, own: int, rounded_up: int, *, bound: bool) -> Load:
    """What a reservation puts on each NUMA node. own: the mask of its exclusive CPUs; rounded_up: millicores by which
    they are more than those asked for that have them; bound: its memory can go nowhere else.

    Exclusive CPUs count whole where they are, also when they are more than what was asked for, and beside them what its
    other containers ask for; where they cover all of that, no more of it counts.
    """
    owned = {node.id: 1000 * (node.cpus.mask & own).bit_count() for node in machine.numa_nodes} if own else {}
    rows = {numa_node: NodeLoad(cpu=milli, expected=milli) for numa_node, milli in owned.items() if milli}
    if reservation is None:
        return Load(rows) if rows else NOTHING
    if len(reservation.numa_nodes) == 1 and not (own or reservation.parts or reservation.demand.hugepages):
        return _of_one(machine, reservation, bound=bound)
    parts = _left(machine, reservation.parts) or _parts(machine, reservation)
    weights = [part.memory for part in parts]
    demand = reservation.demand
    cpu = demand.cpu_milli + rounded_up
    no_more = reservation.pool is not Pool.SHARED or sum(owned.values()) >= cpu
    cpu_weights = [part.cpu_milli for part in parts]
    cpus = shared_out(0 if no_more else cpu, cpu_weights)
    uses = shared_out(0 if no_more else max(cpu, demand.expected_milli), cpu_weights)
    memory = shared_out(demand.memory, weights)
    committed = shared_out(max(demand.memory, demand.memory_limit or 0) if bound else demand.memory, weights)
    for (numa_node, *_), milli, use, requested, may_use in zip(parts, cpus, uses, memory, committed, strict=True):
        own_milli = owned.get(numa_node, 0)
        rows[numa_node] = NodeLoad(max(milli, own_milli), requested, may_use, 1, max(use, own_milli))
    pages = {
        (part.numa_node, size): share
        for size, amount in demand.hugepages.items()
        for part, share in zip(parts, shared_out(amount, _page_weights(machine, parts, size)), strict=True)
    }
    return Load(rows, pages)


def _of_one(machine: Machine, reservation: Reservation, *, bound: bool) -> Load:
    """What nearly all reservations are: all of it on one NUMA node."""
    numa_node, demand = reservation.numa_nodes.lowest, reservation.demand
    if numa_node not in machine.cpu_counts:
        return NOTHING
    cpu, use = (demand.cpu_milli, demand.expected_milli) if reservation.pool is Pool.SHARED else (0, 0)
    may_use = max(demand.memory, demand.memory_limit or 0) if bound else demand.memory
    return Load({numa_node: NodeLoad(cpu, demand.memory, may_use, 1, use)})


def shared_out(total: int, weights: Sequence[int]) -> list[int]:
    """Integers in proportion to the weights (evenly where none is positive) that add up to the total."""
    counted = [max(0, weight) for weight in weights]
    if not any(counted):
        counted = [1] * len(counted)
    whole, seen, given, shares = sum(counted), 0, 0, []
    for weight in counted:
        seen += weight
        shares.append(total * seen // whole - given)
        given += shares[-1]
    return shares


def _page_weights(machine: Machine, parts: Sequence[Part], size: int) -> list[int]:
    """By what each part says, else by how many pages of that size its NUMA node has."""
    said = [dict(part.hugepages).get(size, 0) for part in parts]
    there = {node.id: node.hugepages.get(size, 0) for node in machine.numa_nodes}
    return said if any(said) else [there.get(part.numa_node, 0) for part in parts]


def _left(machine: Machine, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts without those on NUMA nodes that have gone from the machine since; one that has lost its CPUs carries
    none.
    """
    counts = machine.cpu_counts
    there = (part for part in parts if part.numa_node in counts)
    return tuple(part if counts[part.numa_node] else part._replace(cpu_milli=0) for part in there)


def _parts(machine: Machine, reservation: Reservation) -> tuple[Part, ...]:
    """Weights by the number of CPUs; NUMA nodes that the machine does not have are left out."""
    nodes = [node for node in machine.numa_nodes if node.id in reservation.numa_nodes]
    return tuple(Part(node.id, len(node.cpus), len(node.cpus)) for node in nodes)


@dataclass(frozen=True, slots=True)
class Directory:
    """Reservations' keys by pod and by group, containers' ids by reservation, the CPUs that some container has for
    itself, and those that are in a container's stable cpuset.

    special: keys of reservations outside the shared pool, or that want to be alone. sized: of those whose group gave
    its size. placed: how many pods of each workload are on each NUMA node, those on several under WIDE; grouped: how
    many of each group, by the mask of their NUMA nodes. within: millicores requested by those that are kept within each
    cache domain, by its mask.
    """

    by_pod: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_group: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_reservation: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    special: tuple[str, ...] = ()
    sized: tuple[str, ...] = ()
    exclusive: int = 0
    placed: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    grouped: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    within: Mapping[int, int] = field(default_factory=dict)
    stable: int = 0

    def changed(
        self,
        reservations: Sequence[tuple[Reservation | None, Reservation | None]],
        allocations: Iterable[tuple[Allocation | None, Allocation | None]],
        was: Mapping[str, Reservation],
        now: Mapping[str, Reservation],
        staying: Iterable[Allocation],
    ) -> Directory:
        """After these changes, each (before, after). was, now: all reservations before and afterwards. staying: all
        allocations that there are afterwards.
        """
        by_pod, by_group, by_reservation = dict(self.by_pod), dict(self.by_group), dict(self.by_reservation)
        special, sized, exclusive = self.special, self.sized, self.exclusive
        placed, grouped, within = dict(self.placed), dict(self.grouped), self.within
        for before, after in reservations:
            if before is not None:
                _remove(by_pod, before.pod, before.key)
                _remove(by_group, before.group, before.key)
                special = tuple(key for key in special if key != before.key)
                sized = tuple(key for key in sized if key != before.key)
                within = _kept(within, before, -1)
            if after is not None:
                _add(by_pod, after.pod, after.key)
                _add(by_group, after.group, after.key)
                special += (after.key,) if after.alone or after.pool is not Pool.SHARED else ()
                sized += (after.key,) if after.size and after.group else ()
                within = _kept(within, after, 1)
        for pod in {each.pod for change in reservations for each in change if each is not None}:
            _place(placed, grouped, was, self.by_pod.get(pod, ()), -1)
            _place(placed, grouped, now, by_pod.get(pod, ()), 1)
        left, stable, unstable = False, self.stable, False
        for old, new in allocations:
            if old is not None:
                _remove(by_reservation, old.reservation, old.container)
                left = left or bool(old.exclusive)
                unstable = unstable or old.stable
            if new is not None:
                _add(by_reservation, new.reservation, new.container)
                exclusive |= new.exclusive.mask
                stable |= new.cpus.mask if new.stable else 0
        if left:  # summed anew: a CPU that one container gives up may be another's by the same change, or was two's
            exclusive = reduce(or_, (allocation.exclusive.mask for allocation in staying), 0)
        if unstable:
            stable = reduce(or_, (allocation.cpus.mask for allocation in staying if allocation.stable), 0)
        return Directory(by_pod, by_group, by_reservation, special, sized, exclusive, placed, grouped, within, stable)


def _place(
    placed: dict[str, Mapping[int, int]],
    grouped: dict[int, Mapping[str, int]],
    reservations: Mapping[str, Reservation],
    keys: Iterable[str],
    more: int,
) -> None:
    """keys: of a pod's; what has not opted in is of no workload and no group."""
    there = [reservation for key in keys if (reservation := reservations[key]).workload or reservation.group]
    if not there:
        return
    reservation = as_one(there)
    place = reservation.numa_nodes.lowest if len(reservation.numa_nodes) == 1 else WIDE
    if reservation.workload:
        _count(placed, reservation.workload, place, more)
    if reservation.group:
        _count(grouped, reservation.numa_nodes.mask, reservation.group, more)


def _kept(within: Mapping[int, int], reservation: Reservation, sign: int) -> Mapping[int, int]:
    """With one reservation more, or less; domains where no member is left are kept at 0 or above."""
    domain = reservation.cache_domain.mask
    if not domain:
        return within
    return {**within, domain: within.get(domain, 0) + sign * reservation.demand.cpu_milli}


def _count(counts: dict[_Row, Mapping[_Column, int]], row: _Row, column: _Column, more: int) -> None:
    before = counts.get(row, {})
    after = {**before, column: before.get(column, 0) + more}
    if not after[column]:
        del after[column]
    if after:
        counts[row] = after
    else:
        counts.pop(row, None)


def _add(index: dict[str, tuple[str, ...]], key: str, value: str) -> None:
    if key:
        index[key] = (*index.get(key, ()), value)


def _remove(index: dict[str, tuple[str, ...]], key: str, value: str) -> None:
    values = index.get(key, ())
    if value not in values:
        return
    at = values.index(value)
    rest = values[:at] + values[at + 1 :]
    if rest:
        index[key] = rest
    else:
        del index[key]
