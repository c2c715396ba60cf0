"""Where each known workload's replicas should live on a machine, settled ahead of their arrival (`planning`).

`Plan.slot` answers for a newcomer, given who sits where now, what goes into `Kin.planned`:
  1. a vacant slot of its workload, the best first;
  2. for a replica more than expected, the NUMA node that draws it most, less what those would lose whose kept slots it
     would take there: they find them taken when they come, and are replicas without a slot like it. Where only other
     groups live it goes when nothing else is left: it is drawn there for being near, and they need the room themselves;
  3. a workload that the plan does not know is drawn by its kin that sit there, likewise; one without known kin goes
     where there is room kept for no workload;
  4. else nothing, and decide() does what it does without a plan, as it does for a stranger whose group sits here.
It is asked on the hook's path, so it looks at sums, never at each slot: who is there is counted by the occupancy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from numakin.placement.decide.kin_share import homes_of_others
from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import CpuAndMemory, fits, free_room, room_on
from numakin.placement.state.occupancy import Occupancy

SlotCounts = Mapping[str, Mapping[int, int]]
"""As `Directory.placed` has it."""


@dataclass(frozen=True, slots=True)
class PlannedSlots:
    """So many replicas on these NUMA nodes."""

    numa_nodes: NumaSet
    count: int


@dataclass(frozen=True)
class Plan:
    """Slots by workload, the best first.

    pulls: by workload, what each NUMA node exchanges with one replica of it once all are placed as planned. demands: of
    one replica. locality: share of the known traffic that the plan keeps inside NUMA nodes. generation: of the
    occupancy that it was made for.
    """

    slots: Mapping[str, tuple[PlannedSlots, ...]] = field(default_factory=dict, hash=False)
    pulls: Mapping[str, Mapping[int, float]] = field(default_factory=dict, hash=False)
    demands: Mapping[str, Demand] = field(default_factory=dict, hash=False)
    locality: float = 0.0
    generation: int = 0

    def slot(self, machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> NumaSet:
        """Where this newcomer should go; empty: the plan has no advice."""
        if not self.slots:
            return NumaSet()
        placed, demand = occupancy.directory.placed, request.pod_demand
        for slots in self.vacant(request.workload, placed):
            if slots.numa_nodes <= machine.cpu_nodes and fits(
                demand, room_on(machine, occupancy, slots.numa_nodes.lowest)
            ):
                return slots.numa_nodes
        pulls = self.pulls.get(request.workload)
        if pulls is None and not kin.weights and request.opt_in.group in occupancy.directory.by_group:
            return NumaSet()
        kept = self._kept(placed, request.workload)
        drawn = _weights_on(occupancy, kin.weights) if pulls is None else pulls
        offers = {}
        for numa_node, room in free_room(machine, occupancy).items():
            there = kept.get(numa_node, ())
            left = _left(room, demand, there)
            if fits(demand, room) and (drawn or min(left) >= 0):
                offers[numa_node] = drawn.get(numa_node, 0.0) - _lost(left, there), left[0]
        offers = _not_at_others(occupancy, request.opt_in.group, offers) or offers
        best = max(offers, key=lambda offer: (*offers[offer], -offer), default=None)
        return NumaSet() if best is None else NumaSet(1 << best)

    def vacant(self, workload: str, placed: SlotCounts) -> Sequence[PlannedSlots]:
        """What is planned for it less who sits there, and no more than are still to come."""
        planned = self.slots.get(workload, ())
        there = placed.get(workload)
        if there is None:
            return planned
        coming = self._expected.get(workload, 0) - sum(there.values())
        left: list[PlannedSlots] = []
        if coming <= 0:
            return left
        for slots in planned:
            free = min(coming, slots.count - there.get(slots.numa_nodes.lowest, 0))
            if free > 0:
                left.append(PlannedSlots(slots.numa_nodes, free))
                coming -= free
        return left

    @cached_property
    def _expected(self) -> dict[str, int]:
        """Replicas in all, by workload."""
        return {name: sum(slot.count for slot in slots) for name, slots in self.slots.items()}

    def _kept(self, placed: SlotCounts, but: str) -> dict[int, list[_KeptSlots]]:
        """The vacant slots of all workloads but one, by NUMA node."""
        kept: dict[int, list[_KeptSlots]] = {}
        for name, demand in self.demands.items():
            if name == but:
                continue
            for slots in self.vacant(name, placed):
                node = slots.numa_nodes.lowest
                kept.setdefault(node, []).append(_KeptSlots(self._losses[name].get(node, 0.0), demand, slots.count))
        return kept

    @cached_property
    def _losses(self) -> dict[str, dict[int, float]]:
        """By workload and NUMA node, what a replica loses that has to go elsewhere from there."""
        losses = {}
        for name, pulls in self.pulls.items():
            next_best, best = sorted((0.0, 0.0, *pulls.values()))[-2:]
            losses[name] = {numa_node: pull - next_best if pull == best else 0.0 for numa_node, pull in pulls.items()}
        return losses


@dataclass(frozen=True, slots=True)
class _KeptSlots:
    """So many slots kept, and what each loses that has to go."""

    lost: float
    demand: Demand
    count: int


def _left(room: CpuAndMemory, demand: Demand, kept: Sequence[_KeptSlots]) -> CpuAndMemory:
    """What stays beside the demand and all that is kept; negative: so much is missing."""
    cpu = sum(slots.count * slots.demand.expected_milli for slots in kept)
    memory = sum(slots.count * slots.demand.memory for slots in kept)
    return room[0] - demand.expected_milli - cpu, room[1] - demand.memory - memory


def _lost(left: CpuAndMemory, kept: Sequence[_KeptSlots]) -> float:
    """What those lose that have to go, the cheapest first, until nothing is missing."""
    cpu, memory = left
    lost = 0.0
    for slots in sorted(kept, key=lambda slots: slots.lost / max(1, slots.demand.expected_milli)):
        for _ in range(slots.count):
            if cpu >= 0 and memory >= 0:
                return lost
            cpu, memory, lost = cpu + slots.demand.expected_milli, memory + slots.demand.memory, lost + slots.lost
    return lost


def _not_at_others(
    occupancy: Occupancy, group: str, offers: Mapping[int, tuple[float, int]]
) -> dict[int, tuple[float, int]]:
    """Those of the NUMA nodes where the group lives, or no other does."""
    grouped, others = occupancy.directory.grouped, homes_of_others(occupancy, group)
    return {node: offer for node, offer in offers.items() if not others >> node & 1 or group in grouped[1 << node]}


def _weights_on(occupancy: Occupancy, weights: Mapping[str, float]) -> dict[int, float]:
    """Kin weight that sits on each NUMA node."""
    drawn: dict[int, float] = {}
    for pod, weight in weights.items():
        for key in occupancy.directory.by_pod.get(pod, ()):
            home = occupancy.reservations[key].numa_nodes
            if len(home) == 1:
                drawn[home.lowest] = drawn.get(home.lowest, 0.0) + weight
    return drawn
