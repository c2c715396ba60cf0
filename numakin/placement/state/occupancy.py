"""Who holds which CPUs and memory on one machine.

Two things are held apart. A *reservation* is room on NUMA nodes: it counts a pod's whole demand (in container scope a
container's, where no NUMA node holds the pod) from its first container until its sandbox ends, so that an in-place
restart finds its place again. An *allocation* is what one live container has in its cgroup: it ends at StopContainer.
An `Occupancy` is immutable: every change gives a new one with the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.errors import AlreadyHeld
from numakin.placement.model.live_usage import NOTHING, Live
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.placement.state.allocations import Allocation, Part, Reservation, as_one
from numakin.placement.state.fingerprint import fingerprint
from numakin.placement.state.index import EMPTY_INDEX, Index, merged
from numakin.placement.state.load_index import EMPTY, Directory, Load

__all__ = ["Allocation", "Occupancy", "Part", "Reservation", "fingerprint"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """All reservations and allocations of one machine, by key and by container id, and what is live on its NUMA nodes.

    reserved: CPUs that no opted-in container uses, but those of the reserved pool. index: the sums of the others; made
    anew where it is not that of these reservations and allocations.
    """

    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    live: Live = NOTHING
    reserved: CpuSet = CpuSet()
    generation: int = 0
    rules: Rules = field(default_factory=Rules)
    index: Index = field(default=EMPTY_INDEX, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.index.is_of(self.reservations, self.allocations):
            index = Index.of(self.reservations, self.allocations, self.index.machine)
            object.__setattr__(self, "index", index)

    def on(self, machine: Machine) -> Occupancy:
        """With its sums on this machine carried along from here; on another machine `load` counts them each time."""
        if self.index.machine is machine:
            return self
        return replace(self, index=Index.of(self.reservations, self.allocations, machine))

    def with_reservation(self, reservation: Reservation) -> Occupancy:
        """With this reservation, in place of one with the same key."""
        return self.changed(reservations={reservation.key: reservation})

    def with_allocation(self, allocation: Allocation) -> Occupancy:
        """With this allocation; AlreadyHeld when it has another container's exclusive CPUs, or the other way round."""
        return self.changed(allocations={allocation.container: allocation})

    def alone_of(self, container: str) -> CpuSet:
        """The exclusive CPUs of a container that no other one of its pod shares."""
        mine = self.allocations.get(container)
        if mine is None or not mine.exclusive:
            return CpuSet()
        others = (self.allocations[key] for key in self.directory.by_reservation.get(mine.reservation, ()))
        return mine.exclusive - CpuSet(
            reduce(or_, (other.exclusive.mask for other in others if other.container != container), 0)
        )

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
        return replace(self, live=live)

    def emptied(self) -> Occupancy:
        """The same machine by the same rules, with no pod on it and nothing known to be live."""
        return replace(self, reservations={}, allocations={}, live=NOTHING, generation=0)

    def at_generation(self, generation: int) -> Occupancy:
        """Numbered by its reporter."""
        return replace(self, generation=generation)

    def changed(
        self,
        reservations: Mapping[str, Reservation | None] = {},
        allocations: Mapping[str, Allocation | None] = {},
        *,
        checked: bool = True,
    ) -> Occupancy:
        """The next generation with these reservations and allocations, None for one that goes; AlreadyHeld as
        `with_allocation` has it.

        checked: False where others' CPUs are still to be set anew.
        """
        held, given = merged(self.reservations, reservations), merged(self.allocations, allocations)
        index = self.index.changed(held, given, reservations, allocations)
        after = Occupancy(held, given, self.live, self.reserved, self.generation + 1, self.rules, index)
        for allocation in allocations.values():
            if checked and allocation is not None:
                _check(after, allocation)
        return after

    def reported(
        self,
        reservations: Iterable[Reservation],
        gone_reservations: Iterable[str],
        allocations: Iterable[Allocation],
        gone_allocations: Iterable[str],
        live: Live,
    ) -> Occupancy:
        """After a report. What goes is named apart from what comes: a key in both is there afterwards. Unchecked: the
        node is the truth, even where two containers claim the same CPUs.
        """
        held: dict[str, Reservation | None] = dict.fromkeys(gone_reservations)
        held.update((reservation.key, reservation) for reservation in reservations)
        given: dict[str, Allocation | None] = dict.fromkeys(gone_allocations)
        given.update((allocation.container, allocation) for allocation in allocations)
        after = self.changed(held, given, checked=False) if held or given else self
        return after.with_live(self.live.after(live))

    @property
    def directory(self) -> Directory:
        """Where to find reservations and allocations."""
        return self.index.directory

    @property
    def fingerprint(self) -> int:
        """64 bits that are equal when two ends hold the same placements, in whatever order they received them."""
        return self.index.fingerprint

    @property
    def exclusive(self) -> CpuSet:
        """Every CPU that some container has for itself."""
        return CpuSet(self.directory.exclusive)

    def own_of(self, reservation: str) -> int:
        """The mask of the CPUs that a reservation's containers have for themselves."""
        return self.index.own_of(reservation)

    def rounded_up(self, reservation: str, but: str = "") -> int:
        """Millicores by which these are more than was asked for; without those of the container `but`."""
        held = self.allocations.get(but)
        return self.index.rounded_up(reservation) - (held.rounded_up if held and held.reservation == reservation else 0)

    def load(self, machine: Machine, but: str = "") -> Load:
        """What all reservations put on each NUMA node, without the reservation `but`."""
        index = self.on(machine).index
        if but in self.reservations or but in self.directory.by_reservation:
            return index.load.plus(index.load_of(machine, but), -1)
        return index.load

    def cpu_load(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Millicores reserved on each NUMA node, without the reservation `but`."""
        rows = self.load(machine, but).rows
        return {node.id: rows.get(node.id, EMPTY).cpu for node in machine.numa_nodes}

    def memory_load(self, machine: Machine) -> dict[int, int]:
        """Bytes reserved on each NUMA node."""
        rows = self.load(machine).rows
        return {node.id: rows.get(node.id, EMPTY).memory for node in machine.numa_nodes}

    def kept(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Millicores that groups (other than `but`) with a known size will still take, where most of each is.

        Missing members are taken to be like the average of those that are there.
        """
        kept: dict[int, int] = {}
        for group in {self.reservations[key].group for key in self.directory.sized} - {but}:
            reservations = self.members(group)
            missing = max(reservation.size for reservation in reservations) - len(
                {reservation.pod for reservation in reservations}
            )
            homes = [
                numa_node for reservation in reservations for numa_node in reservation.numa_nodes & machine.cpu_nodes
            ]
            if missing > 0 and homes:
                home = max(homes, key=lambda numa_node: (homes.count(numa_node), -numa_node))
                taken = sum(reservation.demand.expected_milli for reservation in reservations)
                kept[home] = kept.get(home, 0) + missing * taken // len(
                    {reservation.pod for reservation in reservations}
                )
        return kept

    def members_of(self, pod: str, but: str = "") -> list[Reservation]:
        """The reservations of a pod that has opted in, without the one with the key `but`: one, or several where its
        containers are placed one by one.
        """
        keys = (key for key in self.directory.by_pod.get(pod, ()) if key != but)
        return [reservation for key in keys if (reservation := self.reservations[key]).opted_in]

    def whole_pods(self) -> dict[str, Reservation]:
        """Each pod that has opted in, as one reservation, by its uid."""
        pods: dict[str, list[Reservation]] = {}
        for reservation in self.reservations.values():
            if reservation.opted_in:
                pods.setdefault(reservation.pod, []).append(reservation)
        return {pod: as_one(there) for pod, there in pods.items()}

    def members(self, group: str, but: str = "") -> list[Reservation]:
        """The reservations of a group's pods, without those of the pod `but`."""
        reservations = (self.reservations[key] for key in self.directory.by_group.get(group, ()))
        return [reservation for reservation in reservations if reservation.pod != but]


def _check(occupancy: Occupancy, allocation: Allocation) -> None:
    """Among members only: where another owner puts a container that has not opted in is not ours to check."""
    if not allocation.exclusive and allocation.cpus.mask & occupancy.directory.exclusive == 0:
        return
    if _foreign(allocation):
        return
    for other in occupancy.allocations.values():
        if other.container == allocation.container or _foreign(other):
            continue
        if other.reservation == allocation.reservation and other.exclusive == allocation.exclusive:
            continue  # a pod's containers may share what no other pod has
        taken = (other.exclusive & allocation.cpus) | (other.cpus & allocation.exclusive)
        if taken:
            raise AlreadyHeld(
                f"CPUs {taken} of container {allocation.container[:12]} are held by container {other.container[:12]}"
            )


def _foreign(allocation: Allocation) -> bool:
    return allocation.externally_managed or allocation.reservation == allocation.container
