"""What is carried from one occupancy to the next beside its reservations and allocations: where to find them, what they
add up to, and their fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from numakin.placement.model.topology import Machine
from numakin.placement.state.allocations import Allocation, Reservation
from numakin.placement.state.fingerprint import MODULUS, fingerprint, of_allocation, of_reservation
from numakin.placement.state.load_index import NOTHING, Directory, Load, load_of

_Held = TypeVar("_Held")


@dataclass(frozen=True, slots=True)
class Index:
    """Of these reservations and allocations. machine: the one whose load is carried along; None: no load is."""

    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    directory: Directory = field(default_factory=Directory)
    fingerprint: int = 0
    machine: Machine | None = None
    load: Load = NOTHING

    @classmethod
    def of(
        cls,
        reservations: Mapping[str, Reservation],
        allocations: Mapping[str, Allocation],
        machine: Machine | None = None,
    ) -> Index:
        """Counted anew."""
        directory = Directory().changed(
            [(None, reservation) for reservation in reservations.values()],
            [(None, allocation) for allocation in allocations.values()],
            {},
            reservations,
            allocations.values(),
        )
        whole = fingerprint(reservations.values(), allocations.values())
        index = cls(reservations, allocations, directory, whole, machine)
        if machine is None:
            return index
        load = NOTHING
        for key in {*reservations, *directory.by_reservation}:
            load = load.plus(index.load_of(machine, key))
        return cls(reservations, allocations, directory, whole, machine, load)

    def is_of(self, reservations: Mapping[str, Reservation], allocations: Mapping[str, Allocation]) -> bool:
        """Whether it is the index of these very mappings."""
        return self.reservations is reservations and self.allocations is allocations

    def changed(
        self,
        reservations: Mapping[str, Reservation],
        allocations: Mapping[str, Allocation],
        changed_reservations: Mapping[str, Reservation | None],
        changed_allocations: Mapping[str, Allocation | None],
    ) -> Index:
        """Of the first two, which differ from the former ones by the last two: None for what goes."""
        moves = [(self.reservations.get(key), reservation) for key, reservation in changed_reservations.items()]
        changes = [(self.allocations.get(key), allocation) for key, allocation in changed_allocations.items()]
        after = Index(
            reservations,
            allocations,
            self.directory.changed(moves, changes, self.reservations, reservations, allocations.values()),
            (self.fingerprint + _difference(moves, changes)) % MODULUS,
            self.machine,
        )
        if self.machine is None:
            return after
        keys = set(changed_reservations)
        for before, now in changes:
            if _weight(before) != _weight(now):
                keys |= {allocation.reservation for allocation in (before, now) if allocation is not None}
        load = self.load
        for key in keys:
            load = load.plus(self.load_of(self.machine, key), -1).plus(after.load_of(self.machine, key))
        return Index(reservations, allocations, after.directory, after.fingerprint, self.machine, load)

    def own_of(self, reservation: str) -> int:
        """The mask of the CPUs that a reservation's containers have for themselves."""
        mask = 0
        for container in self.directory.by_reservation.get(reservation, ()):
            mask |= self.allocations[container].exclusive.mask
        return mask

    def rounded_up(self, reservation: str) -> int:
        """Millicores by which these CPUs are more than was asked for."""
        containers = self.directory.by_reservation.get(reservation, ())
        return sum(self.allocations[container].rounded_up for container in containers)

    def load_of(self, machine: Machine, key: str) -> Load:
        """What one reservation puts on each NUMA node."""
        containers = self.directory.by_reservation.get(key, ())
        bound = any(self.allocations[container].mems for container in containers)
        own = self.own_of(key)
        rounded_up = self.rounded_up(key) if own else 0
        return load_of(machine, self.reservations.get(key), own, rounded_up, bound=bound)


def merged(old: Mapping[str, _Held], new: Mapping[str, _Held | None]) -> Mapping[str, _Held]:
    """The old with the new in place of those with the same key; None takes one away."""
    if not new:
        return old
    after = dict(old)
    for key, value in new.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def _difference(
    reservations: list[tuple[Reservation | None, Reservation | None]],
    allocations: list[tuple[Allocation | None, Allocation | None]],
) -> int:
    """What the changes add to the fingerprint."""
    difference = 0
    for reservation, now in reservations:
        difference += (of_reservation(now) if now else 0) - (of_reservation(reservation) if reservation else 0)
    for allocation, after in allocations:
        difference += (of_allocation(after) if after else 0) - (of_allocation(allocation) if allocation else 0)
    return difference


def _weight(allocation: Allocation | None) -> tuple[str, int, int, bool] | None:
    """What of an allocation counts in its reservation's load."""
    if allocation is None or not (allocation.exclusive or allocation.mems):
        return None
    return allocation.reservation, allocation.exclusive.mask, allocation.rounded_up, bool(allocation.mems)


NO_RESERVATIONS: Mapping[str, Reservation] = {}
NO_ALLOCATIONS: Mapping[str, Allocation] = {}
EMPTY_INDEX = Index(NO_RESERVATIONS, NO_ALLOCATIONS)
