"""Where each known workload's replicas should live on a machine, settled ahead of their arrival (`planning`).

`Plan.seat` answers for a newcomer, given who sits where now, what goes into `Kin.planned`:
  1. a vacant seat of its workload, the best first;
  2. for a replica more than expected, the NUMA node that draws it most, among those with room kept for nobody;
  3. for a workload that the plan does not know, the one where most of its kin sit, among the same;
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
        for one in self.vacant(request.workload, sitting):
            if fits(demand, room_on(machine, occupancy, one.numa_nodes.lowest)):
                return one.numa_nodes
        pulls = self.pulls.get(request.workload)
        if pulls is None:
            if not kin.weights and request.opt_in.group in occupancy.directory.by_group:
                return NumaSet()
            pulls = _live_pulls(occupancy, kin.weights)
        kept = self._kept(sitting, request.workload)
        room = {one: _less(free, kept.get(one, (0, 0))) for one, free in free_room(machine, occupancy).items()}
        open_to_all = [one for one, free in room.items() if fits(demand, free)]
        best = max(open_to_all, key=lambda one: (pulls.get(one, 0.0), room[one][0], -one), default=None)
        return NumaSet() if best is None else NumaSet.of((best,))

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

    def _kept(self, sitting: Sitting, but: str) -> dict[int, Room]:
        """Room of the vacant seats of all workloads but one, by NUMA node."""
        kept: dict[int, Room] = {}
        for name, demand in self.demands.items():
            if name == but:
                continue
            for one in self.vacant(name, sitting):
                node = one.numa_nodes.lowest
                cpu, memory = kept.get(node, (0, 0))
                kept[node] = cpu + one.count * demand.cpu_milli, memory + one.count * demand.memory
        return kept


def _less(free: Room, kept: Room) -> Room:
    return free[0] - kept[0], free[1] - kept[1]


def _live_pulls(occupancy: Occupancy, weights: Mapping[str, float]) -> dict[int, float]:
    """Kin weight on each NUMA node."""
    found: dict[int, float] = {}
    for pod, weight in weights.items():
        for key in occupancy.directory.by_pod.get(pod, ()):
            home = occupancy.seats[key].numa_nodes
            if len(home) == 1:
                found[home.lowest] = found.get(home.lowest, 0.0) + weight
    return found
