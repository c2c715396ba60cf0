"""Where the pods of groups that wait for nodes should go together: best fit by whole groups.

Pod by pod, whoever comes first takes the room that another group needs to be whole. So all groups that wait are packed
at once, those that have members already and cannot choose first, then the largest first. A group goes to the NUMA node
that holds all of it and has least left over; else to the node that holds it, over the fewest NUMA nodes and those on
which most of it is on one; else to the fewest nodes. Where a group is cut, its pods are taken in such an order that
those that talk with each other are on one side, or, where nothing is known of that, workload by workload, the smallest
first: as much as possible of what talks then fits beside each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from extender.planning.group_plan import Vacancy
from extender.state.columns.arrays import Bools, Floats
from extender.state.columns.free_room import FreeRoom, NumaPlace
from numakin.placement.plan.problem import CpuAndMemory

MOST_GROUPS = 500
"""Groups of one plan, the largest first, some 0.1 ms each: the pods of the others are placed one by one."""

LEAST = 1
"""Millicores that a NUMA node has free for a pod that asks for none: those without any take nobody."""

NODES_TRIED = 8
"""Nodes on which a group that no NUMA node holds is tried, pod by pod: sums may fit where the pods do not."""

NOTHING: Mapping[NumaPlace, CpuAndMemory] = {}
NO_SLOTS: Mapping[str, Sequence[Vacancy]] = {}

Pulls = Mapping[str, Mapping[str, float]]
"""What two workloads exchange, by both."""

NO_PULLS: Pulls = {}


class Pod(NamedTuple):
    """One that waits. asks: what it is expected to take; no NUMA node holds more than it has."""

    uid: str
    workload: str
    asks: CpuAndMemory


@dataclass(frozen=True, slots=True)
class Coming:
    """What is still to come of a group. beyond: of members that are not to be planned yet, but have to find room as
    well. here: how many members are on each NUMA node. barred: nodes where it may not go. priority: its highest. grows:
    more of it was created a moment ago, so that it is not known how large it will be.
    """

    group: str
    pods: Sequence[Pod]
    beyond: CpuAndMemory = (0, 0)
    here: Mapping[NumaPlace, int] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    priority: int = 0
    grows: bool = False

    @property
    def asks(self) -> CpuAndMemory:
        return sum(pod.asks[0] for pod in self.pods), sum(pod.asks[1] for pod in self.pods)


def pack(
    groups: Iterable[Coming],
    rooms: FreeRoom,
    pulls: Pulls = NO_PULLS,
    held: Mapping[NumaPlace, CpuAndMemory] = NOTHING,
    slots: Mapping[str, Sequence[Vacancy]] = NO_SLOTS,
) -> dict[str, dict[str, NumaPlace]]:
    """By group the place of each pod; without pods for which there is no room. held: what these groups have of the room
    that is not free. slots: by workload, as a plan by known traffic has them. Same arguments, same places.
    """
    packed: dict[str, dict[str, NumaPlace]] = {}
    index = {name: at for at, name in enumerate(rooms.nodes)}
    for place, (cpu, memory) in held.items():
        if (node := index.get(place.node)) is not None:
            at = rooms.numa_node[node] == place.numa_node
            rooms.cpu[node, at] += cpu
            rooms.memory[node, at] += memory
    order = sorted(groups, key=lambda coming: (-coming.priority, not coming.here, -coming.asks[0], coming.group))
    for coming in order[:MOST_GROUPS]:
        packed[coming.group] = _Packing(rooms, index, coming, pulls).places(slots)
    return packed


class _Packing:
    """Of one group."""

    def __init__(self, rooms: FreeRoom, index: Mapping[str, int], coming: Coming, pulls: Pulls) -> None:
        self._rooms, self._index, self._coming, self._pulls = rooms, index, coming, pulls
        self._cpu, self._memory = rooms.cpu.reshape(-1), rooms.memory.reshape(-1)
        self._places: dict[str, NumaPlace] = {}
        self._width = rooms.cpu.shape[1]

    def places(self, slots: Mapping[str, Sequence[Vacancy]]) -> dict[str, NumaPlace]:
        left = list(self._coming.pods)
        if self._coming.here:
            left = self._beside_members(left)
        elif (home := self._home(self._with_beyond(left))) is not None:
            left = self._take(left, home)
        else:
            left = self._in_slots(left, slots)
        nodes = 0
        while left and nodes < NODES_TRIED:
            before, nodes = len(left), nodes + 1
            left = self._on_next_node(left)
            if len(left) == before:
                break
        return self._places

    def _in_slots(self, left: list[Pod], slots: Mapping[str, Sequence[Vacancy]]) -> list[Pod]:
        """Where the plan by traffic has them."""
        vacant = {
            name: [place for place, count in slots.get(name, ()) for _ in range(count)]
            for name in {pod.workload for pod in left}
        }
        rest = []
        for pod in left:
            place = vacant[pod.workload].pop(0) if vacant[pod.workload] else None
            at = self._position(place) if place is not None else None
            if at is not None and self._holds(pod.asks, at):
                self._take([pod], at)
            else:
                rest.append(pod)
        return rest

    def _position(self, place: NumaPlace) -> int | None:
        if place.node not in self._index or place.node in self._coming.barred:
            return None
        numa_node = self._rooms.numa_node.ravel()
        return next((at for at in self._of_node(place.node) if numa_node[at] == place.numa_node), None)

    def _holds(self, asks: CpuAndMemory, at: int) -> bool:
        return bool(self._cpu[at] >= max(LEAST, asks[0]) and self._memory[at] >= asks[1])

    def _with_beyond(self, pods: Sequence[Pod]) -> CpuAndMemory:
        more = self._coming.beyond
        return sum(pod.asks[0] for pod in pods) + more[0], sum(pod.asks[1] for pod in pods) + more[1]

    def _beside_members(self, left: list[Pod]) -> list[Pod]:
        """Where most members are first, then on the other NUMA nodes of these nodes; or all of it elsewhere on one NUMA
        node, where more pairs are together so.
        """
        here, members = Counter[str](), self._coming.here
        for place, count in members.items():
            here[place.node] += count
        before, coming = self._state(), left
        for node, _ in sorted(here.items(), key=lambda row: (-row[1], row[0])):
            if node in self._index and node not in self._coming.barred:
                mine = {place.numa_node: count for place, count in members.items() if place.node == node}
                numa_node = self._rooms.numa_node.ravel()
                order = sorted(self._of_node(node), key=lambda at: (-mine.get(int(numa_node[at]), 0), -self._cpu[at]))
                left = self._fill(left, order)
        beside = Counter(self._places.values()) + Counter(members)
        apart = Counter(members).values()
        if left and _pairs(beside.values()) + len(left) ** 2 < _pairs(apart) + len(coming) ** 2:
            kept = self._state()
            self._restore(before)
            if (home := self._tightest(self._with_beyond(coming))) is not None:
                return self._take(coming, home)
            self._restore(kept)
        return left

    def _home(self, asks: CpuAndMemory) -> int | None:
        """The NUMA node for all of it; while it grows, the one where most can follow."""
        if not self._coming.grows:
            return self._tightest(asks)
        fits, groups = self._fits(asks), self._rooms.groups.reshape(-1)
        if not fits.any():
            return None
        home = int(np.where(fits, (self._cpu - asks[0]) / (groups + 1), -np.inf).argmax())
        groups[home] += 1
        return home

    def _tightest(self, asks: CpuAndMemory) -> int | None:
        """The NUMA node that holds it with least left over."""
        fits = self._fits(asks)
        return int(np.where(fits, self._cpu, np.inf).argmin()) if fits.any() else None

    def _fits(self, asks: CpuAndMemory) -> Bools:
        fits: Bools = (self._cpu >= max(LEAST, asks[0])) & (self._memory >= asks[1])
        for node in self._coming.barred:
            if node in self._index:
                fits[self._of_node(node)] = False
        return fits

    def _on_next_node(self, left: list[Pod]) -> list[Pod]:
        """On the node that holds the most of it, over the fewest NUMA nodes; those that do not fit there are left."""
        if self._places and (home := self._tightest(self._sum(left))) is not None:
            return self._take(left, home)
        need = self._sum(left)[0]
        best: list[Pod] | None = None
        for node in self._most_promising(need):
            before = self._state()
            rest = self._fill(left, self._roomiest_first(node))
            if not rest:
                return rest
            if best is None or len(rest) < len(best):
                best, kept = rest, self._state()
            self._restore(before)
        if best is None:
            return left
        self._restore(kept)
        return best

    def _state(self) -> tuple[Floats, Floats, dict[str, NumaPlace]]:
        return self._cpu.copy(), self._memory.copy(), dict(self._places)

    def _restore(self, state: tuple[Floats, Floats, dict[str, NumaPlace]]) -> None:
        self._cpu[:], self._memory[:] = state[0], state[1]
        self._places = state[2]

    def _most_promising(self, need: int) -> list[str]:
        """Nodes by how much of all pairs would be on one NUMA node there, as far as CPU tells."""
        free = np.sort(np.maximum(self._rooms.cpu, 0.0), axis=1)[:, ::-1]
        before = np.cumsum(free, axis=1) - free
        taken = np.clip(need - before, 0.0, free)
        together = (taken**2).sum(axis=1)
        for node in self._coming.barred:
            if node in self._index:
                together[self._index[node]] = 0.0
        spare = free.sum(axis=1) - taken.sum(axis=1)
        order = np.lexsort((spare, -np.round(together / max(1, need) ** 2, 6)))[:NODES_TRIED]
        return [self._rooms.nodes[at] for at in order.tolist() if together[at] > 0]

    def _of_node(self, node: str) -> range:
        first = self._index[node] * self._width
        return range(first, first + self._width)

    def _roomiest_first(self, node: str) -> list[int]:
        return sorted(self._of_node(node), key=lambda at: -self._cpu[at])

    def _fill(self, left: list[Pod], order: Sequence[int]) -> list[Pod]:
        """One NUMA node after the other; all on the first one that holds all that is left."""
        for at in order:
            if left and self._holds(self._with_beyond(left), at):
                return self._take(left, at)
            left = self._piece(left, at)
        return left

    def _piece(self, left: list[Pod], at: int) -> list[Pod]:
        """As many as fit, those that talk with each other first."""
        if self._cpu[at] <= 0 or not left:
            return left
        rest = []
        for pod in _by_ties(left, self._pulls):
            if self._holds(pod.asks, at):
                self._take([pod], at)
            else:
                rest.append(pod)
        return rest

    def _take(self, pods: Sequence[Pod], at: int) -> list[Pod]:
        place = self._rooms.place(at)
        for pod in pods:
            self._places[pod.uid] = place
            self._cpu[at] -= pod.asks[0]
            self._memory[at] -= pod.asks[1]
        return []

    def _sum(self, pods: Sequence[Pod]) -> CpuAndMemory:
        return sum(pod.asks[0] for pod in pods), sum(pod.asks[1] for pod in pods)


def _pairs(counts: Iterable[int]) -> int:
    return sum(count * count for count in counts)


def _by_ties(pods: Sequence[Pod], pulls: Pulls) -> list[Pod]:
    """In an order in which each is drawn most by those before it, for what it asks; where nothing is known, workload by
    workload, the smallest first.
    """
    of_workload: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        of_workload[pod.workload].append(pod)
    size = {name: sum(pod.asks[0] for pod in alike) for name, alike in of_workload.items()}
    names = sorted(of_workload, key=lambda name: (size[name], name))
    if not any(pulls.get(name) for name in names):
        return [pod for name in names for pod in of_workload[name]]
    drawn = dict.fromkeys(names, 0.0)
    ordered: list[Pod] = []
    alone = {name: sum(pulls.get(name, {}).get(other, 0.0) for other in names) for name in names}
    left = dict.fromkeys(names)
    while left:
        chosen = max(left, key=lambda name: (drawn[name] / max(1, size[name]), alone[name] / max(1, size[name])))
        del left[chosen]
        ordered += of_workload[chosen]
        for other, weight in pulls.get(chosen, {}).items():
            if other in drawn:
                drawn[other] += weight * len(of_workload[chosen])
    return ordered
