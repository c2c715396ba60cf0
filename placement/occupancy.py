"""Who holds which CPUs and memory on one machine.

Two things are held apart. A *seat* is room on NUMA nodes: it counts a pod's (or, in container scope, a container's)
whole demand from its first container until its sandbox ends, so that an in-place restart finds its place again. A
*holding* is what one live container has in its cgroup: it ends at StopContainer. An `Occupancy` is immutable: every
change gives a new one with the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TypeVar

from placement.cpuset import CpuSet
from placement.errors import AlreadyHeld
from placement.live import NOTHING, Live
from placement.rules import Rules
from placement.seat import Holding, Part, Seat
from placement.tally import EMPTY, Directory, Load, load_of
from placement.topology import Machine

__all__ = ["Holding", "Occupancy", "Part", "Seat", "fingerprint"]

_Held = TypeVar("_Held")


@dataclass(frozen=True)
class Occupancy:
    """All seats and holdings of one machine, by key and by container id, and what is live on its NUMA nodes.

    reserved: CPUs that no opted-in container uses, but those of the reserved pool.
    """

    seats: Mapping[str, Seat] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    live: Live = NOTHING
    reserved: CpuSet = CpuSet()
    generation: int = 0
    rules: Rules = field(default_factory=Rules)

    def seated(self, seat: Seat) -> Occupancy:
        """With this seat, in place of one with the same key."""
        return self.changed(seats={seat.key: seat})

    def held(self, holding: Holding) -> Occupancy:
        """With this holding; AlreadyHeld when it has another container's own CPUs, or another one has its own."""
        return self.changed(holdings={holding.container: holding})

    def without_holding(self, container: str) -> Occupancy:
        """The container has stopped: its CPUs are free, its pod's seat stays."""
        return self.changed(holdings={container: None}) if container in self.holdings else self

    def without_pod(self, pod: str) -> Occupancy:
        """The sandbox has ended: seats and holdings of the pod are free."""
        seats: dict[str, Seat | None] = dict.fromkeys(self.directory.by_pod.get(pod, ()))
        holdings: dict[str, Holding | None] = {key: None for key, one in self.holdings.items() if one.pod == pod}
        return self.changed(seats=seats, holdings=holdings) if seats or holdings else self

    def without_seat(self, key: str) -> Occupancy:
        return self.changed(seats={key: None}) if key in self.seats else self

    def with_live(self, live: Live) -> Occupancy:
        """Live figures are no change of placement: the generation stays."""
        return self._carried(replace(self, live=live))

    def with_reserved(self, reserved: CpuSet) -> Occupancy:
        return self._carried(replace(self, reserved=reserved))

    def with_rules(self, rules: Rules) -> Occupancy:
        return self._carried(replace(self, rules=rules))

    def changed(
        self,
        seats: Mapping[str, Seat | None] = {},
        holdings: Mapping[str, Holding | None] = {},
        *,
        checked: bool = True,
    ) -> Occupancy:
        """The next generation with these seats and holdings, None for one that goes; AlreadyHeld as `held` has it.

        checked: False where others' CPUs are still to be set anew.
        """
        after = replace(
            self,
            seats=_merged(self.seats, seats),
            holdings=_merged(self.holdings, holdings),
            generation=self.generation + 1,
        )
        directory = self.directory.changed(
            [(self.seats.get(key), one) for key, one in seats.items()],
            [(self.holdings.get(key), one) for key, one in holdings.items()],
        )
        after.__dict__["directory"] = directory
        for one in holdings.values():
            if checked and one is not None:
                _check(after, one)
        changes = [(self.holdings.get(key), one) for key, one in holdings.items()]
        weighty = [pair for pair in changes if _weight(pair[0]) != _weight(pair[1])]
        self._carry_load(after, {*seats, *(one.seat for pair in weighty for one in pair if one is not None)})
        return after

    def _carry_load(self, after: Occupancy, seats: Iterable[str]) -> None:
        """Gives the next occupancy the sums of this one, with what these seats put on the machine before and after."""
        if "_load" not in self.__dict__:
            return
        machine, load = self.__dict__["_load"]
        for key in seats:
            load = load.plus(self.load_of(machine, key), -1).plus(after.load_of(machine, key))
        after.__dict__["_load"] = (machine, load)

    def _carried(self, after: Occupancy) -> Occupancy:
        for name in ("directory", "_load"):
            if name in self.__dict__:
                after.__dict__[name] = self.__dict__[name]
        return after

    @cached_property
    def directory(self) -> Directory:
        """Where to find seats and holdings."""
        return Directory().changed(
            [(None, one) for one in self.seats.values()], [(None, one) for one in self.holdings.values()]
        )

    @property
    def exclusive(self) -> CpuSet:
        """Every CPU that some container has for itself."""
        return CpuSet(self.directory.exclusive)

    def own_of(self, seat: str) -> int:
        """The mask of the CPUs that a seat's containers have for themselves."""
        mask = 0
        for container in self.directory.by_seat.get(seat, ()):
            mask |= self.holdings[container].exclusive.mask
        return mask

    def load(self, machine: Machine, but: str = "") -> Load:
        """What all seats put on each NUMA node, without the seat `but`."""
        cached = self.__dict__.get("_load")
        if cached is None or cached[0] is not machine:
            total = Load()
            for key in {*self.seats, *self.directory.by_seat}:
                total = total.plus(self.load_of(machine, key))
            cached = self.__dict__["_load"] = (machine, total)
        whole: Load = cached[1]
        if but in self.seats or but in self.directory.by_seat:
            return whole.plus(self.load_of(machine, but), -1)
        return whole

    def load_of(self, machine: Machine, key: str) -> Load:
        """What one seat puts on each NUMA node."""
        bound = any(self.holdings[one].mems for one in self.directory.by_seat.get(key, ()))
        return load_of(machine, self.seats.get(key), self.own_of(key), bound=bound)

    def cpu_load(self, machine: Machine, but: str = "") -> dict[int, int]:
        """Thousandths of a CPU seated on each NUMA node, without the seat `but`."""
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
        for group in {self.seats[key].group for key in self.directory.sized} - {but}:
            seats = self.members(group)
            missing = max(seat.size for seat in seats) - len({seat.pod for seat in seats})
            homes = [one for seat in seats for one in seat.numa_nodes & machine.cpu_nodes]
            if missing > 0 and homes:
                home = max(homes, key=lambda one: (homes.count(one), -one))
                asked = sum(seat.demand.cpu_milli for seat in seats)
                found[home] = found.get(home, 0) + missing * asked // len({seat.pod for seat in seats})
        return found

    def members(self, group: str, but: str = "") -> list[Seat]:
        """The seats of a group's pods, without those of the pod `but`."""
        found = (self.seats[key] for key in self.directory.by_group.get(group, ()))
        return [seat for seat in found if seat.pod != but]


def _weight(holding: Holding | None) -> tuple[str, int, bool] | None:
    """What of a holding counts in its seat's load."""
    if holding is None or not (holding.exclusive or holding.mems):
        return None
    return holding.seat, holding.exclusive.mask, bool(holding.mems)


def _check(occupancy: Occupancy, holding: Holding) -> None:
    """Among members only: where somebody else puts a container that has not opted in is not ours to promise."""
    if not holding.exclusive and holding.cpus.mask & occupancy.directory.exclusive == 0:
        return
    if _strange(holding):
        return
    for other in occupancy.holdings.values():
        if other.container == holding.container or _strange(other):
            continue
        taken = (other.exclusive & holding.cpus) | (other.cpus & holding.exclusive)
        if taken:
            raise AlreadyHeld(
                f"CPUs {taken} of container {holding.container[:12]} are held by container {other.container[:12]}"
            )


def _strange(holding: Holding) -> bool:
    return holding.foreign or holding.seat == holding.container


def fingerprint(seats: Iterable[Seat], holdings: Iterable[Holding]) -> int:
    """64 bits that are equal when two ends hold the same placements, in whatever order they learned of them."""
    lines = [
        f"s {one.key} {one.group} {one.numa_nodes} {one.demand.cpu_milli} {one.demand.memory}"
        f" {one.pool} {one.alone:d} {one.size} {[*map(tuple, one.parts)]}"
        for one in seats
    ]
    lines += [f"h {one.container} {one.seat} {one.cpus} {one.mems} {one.exclusive} {one.foreign:d}" for one in holdings]
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
