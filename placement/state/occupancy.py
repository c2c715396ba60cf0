"""Who holds which CPUs and memory on one machine.

Two things are held apart. A *reservation* is room on NUMA nodes: it counts a pod's (or, in container scope, a
container's) whole demand from its first container until its sandbox ends, so that an in-place restart finds its place
again. A *allocation* is what one live container has in its cgroup: it ends at StopContainer. An `Occupancy` is
immutable: every change gives a new one with the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TypeVar

from placement.model.cpuset import CpuSet
from placement.model.errors import AlreadyHeld
from placement.model.live_usage import NOTHING, Live
from placement.model.rules import Rules
from placement.model.topology import Machine
from placement.state.allocations import Allocation, Part, Reservation
from placement.state.load_index import EMPTY, Directory, Load, load_of

__all__ = ["Allocation", "Occupancy", "Part", "Reservation", "fingerprint"]

_Held = TypeVar("_Held")


@dataclass(frozen=True)
class Occupancy:
    """All reservations and allocations of one machine, by key and by container id, and what is live on its NUMA nodes.

    reserved: CPUs that no opted-in container uses, but those of the reserved pool.
    """

    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    live: Live = NOTHING
    reserved: CpuSet = CpuSet()
    generation: int = 0
    rules: Rules = field(default_factory=Rules)

    def with_reservation(self, reservation: Reservation) -> Occupancy:
        """With this reservation, in place of one with the same key."""
        return self.changed(reservations={reservation.key: reservation})

    def with_allocation(self, allocation: Allocation) -> Occupancy:
        """With this allocation; AlreadyHeld when it has another container's exclusive CPUs, or the other way round."""
        return self.changed(allocations={allocation.container: allocation})

    def without_allocation(self, container: str) -> Occupancy:
        """The container has stopped: its CPUs are free, its pod's reservation stays."""
        return self.changed(allocations={container: None}) if container in self.allocations else self

    def without_pod(self, pod: str) -> Occupancy:
        """The sandbox has ended: reservations and allocations of the pod are free."""
        reservations: dict[str, Reservation | None] = dict.fromkeys(self.directory.by_pod.get(pod, ()))
        allocations: dict[str, Allocation | None] = {
            key: None for key, allocation in self.allocations.items() if allocation.pod == pod
        }
        return self.changed(reservations=reservations, allocations=allocations) if reservations or allocations else self

    def without_reservation(self, key: str) -> Occupancy:
        return self.changed(reservations={key: None}) if key in self.reservations else self

    def with_live(self, live: Live) -> Occupancy:
        """Live figures are no change of placement: the generation stays."""
        return self._carried(replace(self, live=live))

    def with_reserved(self, reserved: CpuSet) -> Occupancy:
        return self._carried(replace(self, reserved=reserved))

    def with_rules(self, rules: Rules) -> Occupancy:
        return self._carried(replace(self, rules=rules))

    def emptied(self) -> Occupancy:
        """The same machine by the same rules, with nobody on it and nothing known to be live."""
        return replace(self, reservations={}, allocations={}, live=NOTHING, generation=0)

    def at_generation(self, generation: int) -> Occupancy:
        """Numbered by whoever reports it."""
        return self._carried(replace(self, generation=generation))

    def changed(
        self,
        reservations: Mapping[str, Reservation | None] = {},
        allocations: Mapping[str, Allocation | None] = {},
        *,
        checked: bool = True,
    ) -> Occupancy:
        """The next generation with these reservations and allocations, None for one that goes; AlreadyHeld as `held`
        has it.

        checked: False where others' CPUs are still to be set anew.
        """
        after = replace(
            self,
            reservations=_merged(self.reservations, reservations),
            allocations=_merged(self.allocations, allocations),
            generation=self.generation + 1,
        )
        directory = self.directory.changed(
            [(self.reservations.get(key), reservation) for key, reservation in reservations.items()],
            [(self.allocations.get(key), allocation) for key, allocation in allocations.items()],
            after.allocations.values(),
        )
        after.__dict__["directory"] = directory
        for allocation in allocations.values():
            if checked and allocation is not None:
                _check(after, allocation)
        changes = [(self.allocations.get(key), allocation) for key, allocation in allocations.items()]
        weighty = [pair for pair in changes if _weight(pair[0]) != _weight(pair[1])]
        self._carry_load(
            after, {*reservations, *(one.reservation for pair in weighty for one in pair if one is not None)}
        )
        return after

    def _carry_load(self, after: Occupancy, reservations: Iterable[str]) -> None:
        """Gives the next occupancy the sums of this one, with what these reservations put on the machine before and
        after.
        """
        if "_load" not in self.__dict__:
            return
        machine, load = self.__dict__["_load"]
        for key in reservations:
            load = load.plus(self.load_of(machine, key), -1).plus(after.load_of(machine, key))
        after.__dict__["_load"] = (machine, load)

    def _carried(self, after: Occupancy) -> Occupancy:
        for name in ("directory", "_load"):
            if name in self.__dict__:
                after.__dict__[name] = self.__dict__[name]
        return after

    @cached_property
    def directory(self) -> Directory:
        """Where to find reservations and allocations."""
        return Directory().changed(
            [(None, reservation) for reservation in self.reservations.values()],
            [(None, allocation) for allocation in self.allocations.values()],
            self.allocations.values(),
        )

    @property
    def exclusive(self) -> CpuSet:
        """Every CPU that some container has for itself."""
        return CpuSet(self.directory.exclusive)

    def own_of(self, reservation: str) -> int:
        """The mask of the CPUs that a reservation's containers have for themselves."""
        mask = 0
        for container in self.directory.by_reservation.get(reservation, ()):
            mask |= self.allocations[container].exclusive.mask
        return mask

    def load(self, machine: Machine, but: str = "") -> Load:
        """What all reservations put on each NUMA node, without the reservation `but`."""
        cached = self.__dict__.get("_load")
        if cached is None or cached[0] is not machine:
            total = Load()
            for key in {*self.reservations, *self.directory.by_reservation}:
                total = total.plus(self.load_of(machine, key))
            cached = self.__dict__["_load"] = (machine, total)
        whole: Load = cached[1]
        if but in self.reservations or but in self.directory.by_reservation:
            return whole.plus(self.load_of(machine, but), -1)
        return whole

    def load_of(self, machine: Machine, key: str) -> Load:
        """What one reservation puts on each NUMA node."""
        bound = any(self.allocations[one].mems for one in self.directory.by_reservation.get(key, ()))
        return load_of(machine, self.reservations.get(key), self.own_of(key), bound=bound)

    def cpu_load(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Thousandths of a CPU seated on each NUMA node, without the reservation `but`."""
        rows = self.load(machine, but).rows
        return {node.id: rows.get(node.id, EMPTY).cpu for node in machine.numa_nodes}

    def memory_load(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Bytes seated on each NUMA node, like `cpu_load`."""
        rows = self.load(machine, but).rows
        return {node.id: rows.get(node.id, EMPTY).memory for node in machine.numa_nodes}

    def kept(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Thousandths that groups (other than `but`) which told their size will still ask for, where most of each is.

        Missing members are taken to be like the average of those that are there.
        """
        found: dict[int, int] = {}
        for group in {self.reservations[key].group for key in self.directory.sized} - {but}:
            reservations = self.members(group)
            missing = max(reservation.size for reservation in reservations) - len(
                {reservation.pod for reservation in reservations}
            )
            homes = [
                numa_node for reservation in reservations for numa_node in reservation.numa_nodes & machine.cpu_nodes
            ]
            if missing > 0 and homes:
                home = max(homes, key=lambda one: (homes.count(one), -one))
                asked = sum(reservation.demand.cpu_milli for reservation in reservations)
                found[home] = found.get(home, 0) + missing * asked // len(
                    {reservation.pod for reservation in reservations}
                )
        return found

    def members(self, group: str, but: str = "") -> list[Reservation]:
        """The reservations of a group's pods, without those of the pod `but`."""
        found = (self.reservations[key] for key in self.directory.by_group.get(group, ()))
        return [reservation for reservation in found if reservation.pod != but]


def _weight(allocation: Allocation | None) -> tuple[str, int, bool] | None:
    """What of a allocation counts in its reservation's load."""
    if allocation is None or not (allocation.exclusive or allocation.mems):
        return None
    return allocation.reservation, allocation.exclusive.mask, bool(allocation.mems)


def _check(occupancy: Occupancy, allocation: Allocation) -> None:
    """Among members only: where somebody else puts a container that has not opted in is not ours to nomination."""
    if not allocation.exclusive and allocation.cpus.mask & occupancy.directory.exclusive == 0:
        return
    if _strange(allocation):
        return
    for other in occupancy.allocations.values():
        if other.container == allocation.container or _strange(other):
            continue
        taken = (other.exclusive & allocation.cpus) | (other.cpus & allocation.exclusive)
        if taken:
            raise AlreadyHeld(
                f"CPUs {taken} of container {allocation.container[:12]} are held by container {other.container[:12]}"
            )


def _strange(allocation: Allocation) -> bool:
    return allocation.externally_managed or allocation.reservation == allocation.container


def fingerprint(reservations: Iterable[Reservation], allocations: Iterable[Allocation]) -> int:
    """64 bits that are equal when two ends hold the same placements, in whatever order they learned of them."""
    lines = [
        f"s {reservation.key} {reservation.group} {reservation.numa_nodes}"
        f" {reservation.demand.cpu_milli} {reservation.demand.memory}"
        f" {reservation.pool} {reservation.alone:d} {reservation.size} {[*map(tuple, reservation.parts)]}"
        for reservation in reservations
    ]
    lines += [
        f"h {allocation.container} {allocation.reservation} {allocation.cpus} {allocation.mems}"
        f" {allocation.exclusive} {allocation.externally_managed:d}"
        for allocation in allocations
    ]
    return int.from_bytes(blake2b("\n".join(sorted(lines)).encode(), digest_size=8).digest(), "big")


def _merged(old: Mapping[str, _Held], new: Mapping[str, _Held | None]) -> Mapping[str, _Held]:
    if not new:
        return old
    merged = dict(old)
    for key, one in new.items():
        if one is None:
            merged.pop(key, None)
        else:
            merged[key] = one
    return merged
