"""Where each known workload's replicas should live on a machine, settled ahead of their arrival (`planning`).

`Plan.seat` answers for a newcomer, given who sits where now, what goes into `Kin.planned`:
  1. a vacant seat of its workload, the best first;
  2. for a replica more than expected, the NUMA node that draws it most, less what those would lose whose kept seats it
     would take there: they find them taken when they come, and are replicas without a seat like it;
  3. for a workload that the plan does not know, the NUMA node where most of its kin sit, among those with room kept for
     nobody;
  4. else nothing, and decide() does what it does without a plan, as it does for a stranger whose group sits here.
It is asked on the hook's path, so it looks at sums, never at each seat: who is there is counted by the occupancy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placement.cpuset import NumaSet
from placement.demand import Demand
from placement.known import Room, fits, free_room, room_on
from placement.occupancy import Occupancy
from placement.request import Kin, Request
from placement.topology import Machine

Sitting = Mapping[str, Mapping[int, int]]
"""As `Directory.sitting` has it."""


@dataclass(frozen=True, slots=True)
class PlannedSeats:
    """So many replicas on these NUMA nodes."""

    numa_nodes: NumaSet
    count: int


@dataclass(frozen=True)
class Plan:
    """Seats by workload, the best first.

    pulls: by workload, what each NUMA node exchanges with one replica of it once all are seated as planned. demands: of
    one replica. locality: share of the known traffic that the plan keeps inside NUMA nodes.
    """

    seats: Mapping[str, tuple[PlannedSeats, ...]] = field(default_factory=dict, hash=False)
    pulls: Mapping[str, Mapping[int, float]] = field(default_factory=dict, hash=False)
    demands: Mapping[str, Demand] = field(default_factory=dict, hash=False)
    locality: float = 0.0

    def seat(self, machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> NumaSet:
        """Where this newcomer should go; empty: the plan has no advice."""
        if not self.seats:
            return NumaSet()
        sitting, demand = occupancy.directory.sitting, request.seat_demand
        for seats in self.vacant(request.workload, sitting):
            if fits(demand, room_on(machine, occupancy, seats.numa_nodes.lowest)):
                return seats.numa_nodes
        pulls = self.pulls.get(request.workload)
        if pulls is None and not kin.weights and request.opt_in.group in occupancy.directory.by_group:
            return NumaSet()
        kept = self._kept(sitting, request.workload)
        offers = {}
        for one, room in free_room(machine, occupancy).items():
            left = _left(room, demand, kept.get(one, ()))
            if pulls is not None and fits(demand, room):
                offers[one] = pulls.get(one, 0.0) - _lost(left, kept.get(one, ())), left[0]
            elif pulls is None and min(left) >= 0:
                offers[one] = _weight_on(occupancy, kin.weights, one), left[0]
        best = max(offers, key=lambda one: (*offers[one], -one), default=None)
        return NumaSet() if best is None else NumaSet(1 << best)

    def vacant(self, workload: str, sitting: Sitting) -> Sequence[PlannedSeats]:
        """What is planned for it less who sits there, and no more than are still to come."""
        planned = self.seats.get(workload, ())
        there = sitting.get(workload)
        if there is None:
            return planned
        coming = self._expected.get(workload, 0) - sum(there.values())
        left: list[PlannedSeats] = []
        if coming <= 0:
            return left
        for one in planned:
            free = min(coming, one.count - there.get(one.numa_nodes.lowest, 0))
            if free > 0:
                left.append(PlannedSeats(one.numa_nodes, free))
                coming -= free
        return left

    @cached_property
    def _expected(self) -> dict[str, int]:
        """Replicas in all, by workload."""
        return {name: sum(one.count for one in seats) for name, seats in self.seats.items()}

    def _kept(self, sitting: Sitting, but: str) -> dict[int, list[_Kept]]:
        """The vacant seats of all workloads but one, by NUMA node."""
        kept: dict[int, list[_Kept]] = {}
        for name, demand in self.demands.items():
            if name == but:
                continue
            for one in self.vacant(name, sitting):
                node = one.numa_nodes.lowest
                kept.setdefault(node, []).append(_Kept(self._losses[name].get(node, 0.0), demand, one.count))
        return kept

    @cached_property
    def _losses(self) -> dict[str, dict[int, float]]:
        """By workload and NUMA node, what a replica loses that has to go elsewhere from there."""
        found = {}
        for name, pulls in self.pulls.items():
            next_best, best = sorted((0.0, 0.0, *pulls.values()))[-2:]
            found[name] = {one: pull - next_best if pull == best else 0.0 for one, pull in pulls.items()}
        return found


@dataclass(frozen=True, slots=True)
class _Kept:
    """So many seats kept, and what each loses that has to go."""

    lost: float
    demand: Demand
    count: int


def _left(room: Room, demand: Demand, kept: Sequence[_Kept]) -> Room:
    """What stays beside the demand and all that is kept; negative: so much is missing."""
    cpu = sum(one.count * one.demand.cpu_milli for one in kept)
    memory = sum(one.count * one.demand.memory for one in kept)
    return room[0] - demand.cpu_milli - cpu, room[1] - demand.memory - memory


def _lost(left: Room, kept: Sequence[_Kept]) -> float:
    """What those lose that have to go, the cheapest first, until nothing is missing."""
    cpu, memory = left
    lost = 0.0
    for one in sorted(kept, key=lambda one: one.lost / max(1, one.demand.cpu_milli)):
        for _ in range(one.count):
            if cpu >= 0 and memory >= 0:
                return lost
            cpu, memory, lost = cpu + one.demand.cpu_milli, memory + one.demand.memory, lost + one.lost
    return lost


def _weight_on(occupancy: Occupancy, weights: Mapping[str, float], numa_node: int) -> float:
    """Kin weight that sits there."""
    there = NumaSet(1 << numa_node)
    keys = ((key, weight) for pod, weight in weights.items() for key in occupancy.directory.by_pod.get(pod, ()))
    return sum(weight for key, weight in keys if occupancy.seats[key].numa_nodes == there)
