"""Who holds which CPUs and memory on one machine.

Two things are held apart. A *seat* is room on NUMA nodes: it counts a pod's (or, in container scope, a container's) whole demand from its first container
until its sandbox ends, so that an in-place restart finds its place again. A *holding* is what one live container has in its cgroup: it ends at
StopContainer. An `Occupancy` is immutable: every change gives a new one with the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

from placement.cpuset import CpuSet, NumaSet
from placement.demand import Demand
from placement.errors import AlreadyHeld
from placement.topology import Machine


@dataclass(frozen=True, slots=True)
class Seat:
    """Room held on NUMA nodes. key: the pod's uid, or UID/CONTAINER-NAME in container scope, or a container's id where it has not opted in.

    group: NAMESPACE/name, or empty for what has not opted in (and for members whose group is not learned yet).
    """

    key: str
    pod: str
    group: str
    numa_nodes: NumaSet
    demand: Demand


@dataclass(frozen=True, slots=True)
class Holding:
    """What one live container has. `cpus` and `mems` empty: not limited by us. `exclusive`: those of its CPUs that nobody else may use."""

    container: str
    name: str
    pod: str
    seat: str
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    exclusive: CpuSet = CpuSet()


@dataclass(frozen=True)
class Occupancy:
    """All seats and holdings of one machine, and the live free memory of its NUMA nodes in bytes (empty: not known)."""

    seats: Mapping[str, Seat] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    free_memory: Mapping[int, int] = field(default_factory=dict)
    reserved: CpuSet = CpuSet()
    generation: int = 0

    def seated(self, seat: Seat) -> Occupancy:
        """With this seat, in place of one with the same key."""
        return self._changed(seats={**self.seats, seat.key: seat})

    def held(self, holding: Holding) -> Occupancy:
        """With this holding; AlreadyHeld when its CPUs are another container's own, or its own ones are in another's set."""
        for other in self.holdings.values():
            if other.container == holding.container:
                continue
            taken = (other.exclusive & holding.cpus) | (other.cpus & holding.exclusive)
            if taken:
                raise AlreadyHeld(
                    f"CPUs {taken} of container {holding.container[:12]} are held by container {other.container[:12]}"
                )
        return self._changed(holdings={**self.holdings, holding.container: holding})

    def without_holding(self, container: str) -> Occupancy:
        """The container has stopped: its CPUs are free, its pod's seat stays."""
        if container not in self.holdings:
            return self
        return self._changed(holdings={key: one for key, one in self.holdings.items() if key != container})

    def without_pod(self, pod: str) -> Occupancy:
        """The sandbox has ended: seats and holdings of the pod are free."""
        seats = {key: one for key, one in self.seats.items() if one.pod != pod}
        holdings = {key: one for key, one in self.holdings.items() if one.pod != pod}
        if len(seats) == len(self.seats) and len(holdings) == len(self.holdings):
            return self
        return self._changed(seats=seats, holdings=holdings)

    def without_seat(self, key: str) -> Occupancy:
        if key not in self.seats:
            return self
        return self._changed(seats={other: one for other, one in self.seats.items() if other != key})

    def with_free_memory(self, free: Mapping[int, int]) -> Occupancy:
        """Live facts are not a change of placement: the generation stays."""
        return replace(self, free_memory=dict(free))

    def with_reserved(self, reserved: CpuSet) -> Occupancy:
        return replace(self, reserved=reserved)

    def _changed(self, **fields: object) -> Occupancy:
        return replace(self, generation=self.generation + 1, **fields)  # type: ignore[arg-type]

    @cached_property
    def exclusive(self) -> CpuSet:
        """Every CPU that some container has for itself."""
        mask = 0
        for one in self.holdings.values():
            mask |= one.exclusive.mask
        return CpuSet(mask)

    def cpu_load(self, machine: Machine, but: str = "") -> dict[int, float]:
        """Thousandths of a CPU seated on each NUMA node, without the seat `but`; a seat over several counts on each by its share of their CPUs."""
        load = {node.id: 0.0 for node in machine.numa_nodes}
        for seat in self._others(but):
            for one, share in _shares(machine, seat.numa_nodes):
                load[one] += seat.demand.cpu_milli * share
        return load

    def memory_load(self, machine: Machine, but: str = "") -> dict[int, float]:
        """Bytes seated on each NUMA node, like `cpu_load`."""
        load = {node.id: 0.0 for node in machine.numa_nodes}
        for seat in self._others(but):
            for one, share in _shares(machine, seat.numa_nodes):
                load[one] += seat.demand.memory * share
        return load

    def members(self, group: str, but: str = "") -> list[Seat]:
        """The seats of a group's pods, without those of the pod `but`."""
        return [seat for seat in self.seats.values() if seat.group == group and seat.pod != but] if group else []

    def _others(self, but: str) -> Iterable[Seat]:
        return (seat for key, seat in self.seats.items() if key != but)


def fingerprint(seats: Iterable[Seat], holdings: Iterable[Holding]) -> int:
    """64 bits that are equal when two ends hold the same placements, whatever the order in which they learned of them."""
    lines = [f"s {one.key} {one.group} {one.numa_nodes} {one.demand.cpu_milli} {one.demand.memory}" for one in seats]
    lines += [f"h {one.container} {one.seat} {one.cpus} {one.mems} {one.exclusive}" for one in holdings]
    return int.from_bytes(blake2b("\n".join(sorted(lines)).encode(), digest_size=8).digest(), "big")


def _shares(machine: Machine, numa_nodes: NumaSet) -> list[tuple[int, float]]:
    sizes = [(one, len(machine.node(one).cpus)) for one in numa_nodes]
    total = sum(size for _, size in sizes)
    return [(one, size / total) for one, size in sizes] if total else [(one, 1 / len(sizes)) for one, _ in sizes]
