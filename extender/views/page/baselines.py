"""How local a group would be if it were placed otherwise, on the machines as they are without it.

The best possible is what the planner finds when all of the group may go anywhere. The two others are what there is
without numakin: kube-scheduler takes the emptiest node, and there the kubelet's topology manager the lowest-numbered
NUMA node with room, or the kernel's load balancing the emptiest one. All are computed when they are asked for.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from heapq import heappop, heapreplace
from operator import le
from threading import Lock

from extender.planning.group_plan import NO_BOUNDS, LeftOnNodes, Overheads, make_plan, roomiest
from extender.state.columns.free_room import NumaPlace
from extender.state.node_view import NodeView
from extender.state.pods import NOT_SAID, Allocatable
from extender.views.page.scene import SHARE
from numakin.placement.model.demand import Demand
from numakin.placement.plan.problem import CpuAndMemory, Weights, Workload, free_room

ORDERS = 5
"""Orders of arrival that the alternatives are a mean of."""

Chooser = Callable[[dict[int, int]], int]
"""The NUMA node for the next pod, of those with room and their free millicores."""

MOST_NODES = 200
"""Nodes that are considered, those with members and the roomiest."""

MOST_KEPT = 100
"""Groups whose comparison serves on."""


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A group to place anew. workloads: by pod uid. demands: of one replica. weights: between workloads, each pair
    once, in ascending order. overheads: what one replica takes of its node beside its demand.
    """

    workloads: Mapping[str, str]
    demands: Mapping[str, Demand]
    weights: Weights
    overheads: Overheads = field(default_factory=dict)

    @property
    def replicas(self) -> Counter[str]:
        return Counter(self.workloads.values())

    def asks(self, workload: str) -> Allocatable:
        """What one replica asks of its node."""
        demand, (cpu, memory) = self.demands[workload], self.overheads.get(workload, (0, 0))
        return Allocatable(demand.cpu_milli + cpu, demand.memory + memory, 1)


@dataclass(frozen=True, slots=True)
class Compared:
    """Shares of the group's weight inside one NUMA node, 0 to 1."""

    best: float
    lowest_first: float
    spread: float


def compared(group: PlacedGroup, views: Sequence[NodeView], given: LeftOnNodes = NO_BOUNDS) -> Compared:
    """views: of the nodes that newcomers may go to. given: what kube-scheduler has to give there to the group and to
    what others request.
    """
    member_counts = Counter(view.name for view in views for uid in view.index.member_pods if uid in group.workloads)
    empty = [_without(view, group) if view.name in member_counts else view for view in views]
    left = {view.name: _left(given.get(view.name, NOT_SAID), view) for view in empty}
    lowest_first = _mean(group, empty, left, min)
    spread = _mean(group, empty, left, lambda rooms: max(rooms, key=lambda at: (rooms[at], -at)))
    planned = _local(group, _planned(group, empty, left, member_counts))
    return Compared(max(planned, lowest_first, spread), lowest_first, spread)


def _left(given: Allocatable, view: NodeView) -> Allocatable:
    cpu, memory = view.requested
    return Allocatable(given.cpu - cpu, given.memory - memory, given.pods)


class Comparisons:
    """The latest of each group, for any number of threads: the longer it took, the longer it serves, so that who reads
    of a group costs a bounded share of one CPU. While one is made, who asks has the one before, or none: of hundreds of
    workloads it takes seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._kept: OrderedDict[str, tuple[float, Compared | None]] = OrderedDict()
        """Until when it serves."""

    def of(self, group: str, made: Callable[[], Compared | None]) -> Compared | None:
        if not self._lock.acquire(blocking=False):
            return self._kept.get(group, (0.0, None))[1]
        try:
            began = self._clock()
            until, found = self._kept.get(group, (began, None))
            if began < until:
                return found
            found = made()
            self._kept[group] = began + (self._clock() - began) / SHARE, found
            self._kept.move_to_end(group)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return found
        finally:
            self._lock.release()


Counts = Mapping[str, Mapping[NumaPlace, int]]
"""Replicas by workload and place; who fits nowhere is in none."""


def _local(group: PlacedGroup, counts: Counts) -> float:
    """The share of all pairs' weight that has both ends in one place, each workload's spread over its replicas."""
    replicas = group.replicas
    total = local = 0.0
    for (first, second), weight in group.weights.items():
        own, theirs = counts.get(first, {}), counts.get(second, {})
        if first == second:
            pairs = replicas[first] * (replicas[first] - 1)
            together = sum(count * (count - 1) for count in own.values())
        else:
            pairs = replicas[first] * replicas[second]
            together = sum(count * theirs.get(place, 0) for place, count in own.items())
        if pairs:
            total += weight
            local += weight * together / pairs
    return local / total if total else 0.0


def _planned(
    group: PlacedGroup, views: Sequence[NodeView], left: LeftOnNodes, member_counts: Mapping[str, int]
) -> Counts:
    need = int(sum(group.asks(workload).cpu * count for workload, count in group.replicas.items()))
    workloads = [Workload(name, group.demands[name], count) for name, count in sorted(group.replicas.items())]
    machines = roomiest(views, member_counts, {}, need, left=left)
    if not machines:
        return {}
    plan = make_plan(machines, workloads, group.weights, {}, {}, left=left, overheads=group.overheads)
    return {name: {slot.place: slot.replicas for slot in slots} for name, slots in plan.slots.items()}


def _mean(group: PlacedGroup, views: Sequence[NodeView], left: LeftOnNodes, choose: Chooser) -> float:
    """Over some orders of arrival: one alone may be lucky."""
    return sum(_local(group, _scheduled(group, views, left, choose, order)) for order in range(ORDERS)) / ORDERS


def _scheduled(group: PlacedGroup, views: Sequence[NodeView], left: LeftOnNodes, choose: Chooser, order: int) -> Counts:
    """One pod after the other, in an order that is random and always the same."""
    left = {**left}
    room = {view.name: free_room(view.machine, view.occupancy) for view in views}
    taken = {view.name: -_free_share(view, room[view.name]) for view in views}
    whole = {view.name: 1000 * len(view.machine.cpus) for view in views}
    emptiest_first = sorted((share, node) for node, share in taken.items())
    candidates = {workload: [*emptiest_first] for workload in group.demands}
    counts: dict[str, Counter[NumaPlace]] = {}
    for uid in sorted(group.workloads, key=lambda uid: blake2b(f"{order} {uid}".encode(), digest_size=8).digest()):
        workload = group.workloads[uid]
        demand, asks = group.demands[workload], group.asks(workload)
        node, rooms = _emptiest(candidates[workload], taken, partial(_rooms_on, room, left, demand, asks))
        if not rooms:
            continue
        left[node] = Allocatable(*(had - asked for had, asked in zip(left[node], asks, strict=True)))
        numa_node = choose(rooms)
        cpu, memory = room[node][numa_node]
        room[node][numa_node] = cpu - demand.cpu_milli, memory - demand.memory
        taken[node] += demand.cpu_milli / whole[node]
        counts.setdefault(workload, Counter())[NumaPlace(node, numa_node)] += 1
    return counts


def _emptiest(
    nodes: list[tuple[float, str]], taken: Mapping[str, float], rooms_on: Callable[[str], dict[int, int]]
) -> tuple[str, dict[int, int]]:
    """The emptiest node with room, with the free millicores of its NUMA nodes that have it. nodes: a heap by the share
    that was taken of each; those without room never have it again, and go.
    """
    while nodes:
        share, node = nodes[0]
        if share < taken[node]:
            heapreplace(nodes, (taken[node], node))
        elif rooms := rooms_on(node):
            return node, rooms
        else:
            heappop(nodes)
    return "", {}


def _rooms_on(
    room: Mapping[str, Mapping[int, CpuAndMemory]], left: LeftOnNodes, demand: Demand, asks: Allocatable, node: str
) -> dict[int, int]:
    """The free millicores of its NUMA nodes that hold the demand; none where too little is left of the node."""
    if not all(map(le, asks, left[node])):
        return {}
    return {at: free[0] for at, free in room[node].items() if _holds(free, demand)}


def free_milli(view: NodeView) -> int:
    """Millicores of a node that are not requested."""
    machine = view.machine
    return 1000 * len(machine.cpus) - sum(view.occupancy.cpu_load(machine).values())


def _holds(room: CpuAndMemory, demand: Demand) -> bool:
    return demand.cpu_milli <= room[0] and demand.memory <= room[1]


def _free_share(view: NodeView, rooms: Mapping[int, CpuAndMemory]) -> float:
    return sum(cpu for cpu, _ in rooms.values()) / (1000 * len(view.machine.cpus))


def _without(view: NodeView, group: PlacedGroup) -> NodeView:
    """As if no pod of the group were there."""
    occupancy = view.occupancy
    for uid in view.index.member_pods & group.workloads.keys():
        occupancy = occupancy.without_pod(uid)
    return replace(view, reported=occupancy, assumed={}, ended=frozenset(), occupancy=occupancy)
