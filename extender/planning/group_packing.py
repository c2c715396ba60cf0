"""Where the pods of one group go, in the room that is left by those before it.

Where a group is cut, its pods are taken in such an order that those that talk with each other are on one side, or,
where nothing is known of that, workload by workload, the smallest first: as much as possible of what talks then fits
beside each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from extender.planning.coming import Coming, Pod, pairs, summed
from extender.planning.group_plan import Vacancy
from extender.state.admission import ANYWHERE, NodeSet
from extender.state.columns.arrays import Bools, Floats
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods, FreeRoom, NumaPlace
from extender.state.node_domains import NodeDomain, NodeDomains
from numakin.placement.model.live_usage import Devices

LEAST = 1
"""Millicores that a NUMA node has free for a pod that asks for none: those without any take no pod."""

NODES_TRIED = 8
"""Nodes on which a group that no NUMA node holds is tried, pod by pod: sums may fit where the pods do not."""

EVERYWHERE: Bools | None = None

Pulls = Mapping[str, Mapping[str, float]]
"""What two workloads exchange, by both."""


@dataclass(frozen=True)
class NodeAreas:
    """nodes: their names."""

    nodes: Sequence[str]
    domains: NodeDomains

    @cached_property
    def by_domain(self) -> dict[NodeDomain, Bools]:
        """The nodes of each domain."""
        found: dict[NodeDomain, Bools] = {}
        for at, node in enumerate(self.nodes):
            for domain in self.domains.of(node):
                if domain is not None:
                    found.setdefault(domain, np.zeros(len(self.nodes), dtype=np.bool_))[at] = True
        return found

    def around(self, node: str) -> list[Bools]:
        """The nodes that are near this one, the nearest first."""
        near = dict.fromkeys(self.domains.of(node))
        return [self.by_domain[domain] for domain in near if domain in self.by_domain]


@dataclass(frozen=True, slots=True)
class PackingInput:
    """What `pack` is given. index: of each node in rooms."""

    rooms: FreeRoom
    index: Mapping[str, int]
    areas: NodeAreas
    pulls: Pulls
    slots: Mapping[str, Sequence[Vacancy]]
    before: Mapping[str, NumaPlace]
    _open: dict[NodeSet, Bools] = field(default_factory=dict)

    def open(self, where: NodeSet) -> Bools:
        """The nodes that are among these."""
        found = self._open.get(where)
        if found is None:
            found = np.full(len(self.index), not where.alone)
            found[[self.index[node] for node in where.names if node in self.index]] = where.alone
            self._open[where] = found
        return found


class GroupPacking:
    """Takes the room of each pod that it places. barred: the nodes where the group may not go by now."""

    def __init__(self, given: PackingInput, coming: Coming, barred: Callable[[], Collection[str]]) -> None:
        self._coming, self._rooms, self._index, self._open = coming, given.rooms, given.index, given.open
        self._barred = barred
        self._areas, self._pulls, self._slots, self._before = given.areas, given.pulls, given.slots, given.before
        rooms = given.rooms
        self._within: Bools | None = None
        self._cpu, self._memory, self._pods = rooms.cpu.reshape(-1), rooms.memory.reshape(-1), rooms.left[2]
        self._pages = {size: free.reshape(-1) for size, free in rooms.pages.items()}
        self._devices = rooms.devices if coming.led else {}
        self._places: dict[str, NumaPlace] = {}
        self._width = rooms.cpu.shape[1]
        self._bound = any(pod.where is not ANYWHERE for pod in coming.all)
        self._later = frozenset(pod.uid for pod in coming.later)
        self._ahead = NO_ROOM
        self._freed = np.zeros((3, len(self._cpu)))
        for place, room in coming.freed.items():
            if (at := self._position(place)) is not None:
                self._freed[:, at] = room

    def whole(self) -> dict[str, NumaPlace]:
        """All on one NUMA node, of those that have no node in common each part; nowhere where none holds it."""
        before = self._state()
        for pods in self._parts(self._coming.all):
            if (home := self._near_home(pods)) is None:
                self._restore(before)
                break
            self._take(pods, home)
        return self._places

    def stay(self) -> dict[str, NumaPlace]:
        """Those where they were planned last that have room there."""
        for pod in self._coming.all:
            place = self._before.get(pod.uid)
            at = self._position(place) if place is not None else None
            if at is not None and self._holds([pod], pod.asks, at):
                self._take([pod], at)
        return self._places

    def places(self) -> dict[str, NumaPlace]:
        """All, with those that stay."""
        for left in self._parts([pod for pod in self._coming.all if pod.uid not in self._places]):
            self._place(left)
        return self._places

    def _place(self, left: list[Pod]) -> None:
        open_, index = self._open_to_any(left), self._index
        if self._coming.going and not self._members():
            left = self._again(left)
        elif any(place.node not in index or open_[index[place.node]] for place in self._members()):
            left = self._beside_members(left)
        elif (home := self._near_home(left)) is not None:
            left = self._take(left, home)
        else:
            left = self._in_slots(left)
        self._over_nodes(left)

    def _again(self, left: list[Pod]) -> list[Pod]:
        """All of it where there is room for all though none has left, most of it was there or not: how long they take
        to end is not known. Else where there is for what comes before they have left where they end at once; else where
        it was by and by.
        """
        before_ends = (summed(left), self._coming.ahead) if self._coming.ahead != NO_ROOM else ()
        homes = (self._old_home(left, ahead) for ahead in (*before_ends, NO_ROOM))
        home = next((home for home in homes if home is not None), None)
        return self._take(left, home) if home is not None else self._beside(left, Counter(self._coming.going))

    def _old_home(self, pods: Sequence[Pod], ahead: CpuMemoryPods) -> int | None:
        """The NUMA node that holds them all, of those that they come to again first. ahead: what of them has to have
        room before the others have left theirs.
        """
        self._ahead = ahead
        fits = self._fits(pods, self._with_beyond(pods), self._coming.beyond_devices)
        homes = (self._position(place) for place, _ in Counter(self._coming.going).most_common())
        home = next((at for at in homes if at is not None and fits[at]), None)
        if home is None:
            home = self._near_home(pods)
        self._ahead = NO_ROOM
        return home

    def _near_home(self, pods: Sequence[Pod]) -> int | None:
        """The NUMA node for all of them, near what is placed already if any is there."""
        home = None
        for within in (*self._around(), EVERYWHERE):
            self._within = within
            if (home := self._home(pods)) is not None:
                break
        self._within = EVERYWHERE
        return home

    def _parts(self, pods: list[Pod]) -> list[list[Pod]]:
        """Those together that have a node in common, the largest part first."""
        if not self._bound:
            return [pods]
        alike: dict[NodeSet, list[Pod]] = defaultdict(list)
        for pod in pods:
            alike[pod.where].append(pod)
        if len(alike) <= 1:
            return [pods]
        parts: list[tuple[Bools, list[Pod]]] = []
        for where in sorted(alike, key=lambda where: (self._open(where).sum(), alike[where][0].uid)):
            for at, (common, part) in enumerate(parts):
                if (common & self._open(where)).any():
                    parts[at] = common & self._open(where), part + alike[where]
                    break
            else:
                parts.append((self._open(where), alike[where]))
        return sorted((part for _, part in parts), key=lambda part: (-len(part), part[0].uid))

    def _members(self) -> Counter[NumaPlace]:
        """Those that are there, and those that are planned so far."""
        return Counter(self._places.values()) + Counter(self._coming.here)

    def _over_nodes(self, left: list[Pod]) -> None:
        """On one node, else on those of the nearest domain that holds it, else on any, near each other."""
        around, holding = self._around(), self._holding(left)
        tries: list[tuple[int, Bools | None]] = []
        if around:
            tries = [(most, area) for most in (1, NODES_TRIED) for area in around]
        elif holding:
            tries = [(1, self._roomy(left)), *((NODES_TRIED, area) for area in holding)]
        for most, within in tries:
            before = self._state()
            if not self._on_nodes(left, most, within):
                return
            self._restore(before)
        if not around:
            left = self._on_nodes(left, 1, EVERYWHERE)
        for within in (*self._around(), EVERYWHERE):
            left = self._on_nodes(left, NODES_TRIED, within)

    def _around(self) -> list[Bools]:
        """The nodes near that on which most of it is, the nearest first; none where none of it is anywhere."""
        there = Counter(place.node for place in self._places.values())
        for place, count in self._coming.here.items():
            there[place.node] += count
        most = max(there, key=lambda node: (there[node], node), default="")
        return self._areas.around(most)

    def _roomy(self, left: Sequence[Pod]) -> Bools:
        """The nodes that have room for all, as far as sums tell."""
        asks = np.array(self._with_beyond(left))[:, None]
        roomy: Bools = (self._rooms.of_nodes >= asks).all(axis=0) & self._open_to_any(left)
        return roomy

    def _holding(self, left: Sequence[Pod]) -> list[Bools]:
        """The domains whose nodes have room for all as far as sums tell, the nearest first, of those alike those where
        it takes the fewest nodes, and then with least left over.
        """
        if not left or not self._areas.domains.of_node:
            return []
        asks, open_ = self._with_beyond(left), self._open_to_any(left)
        free = np.where(open_, self._rooms.of_nodes, 0.0)
        roomy = [
            (domain[0], _fewest(free[:, there], asks), float(free[0, there].sum()), int(there.argmax()), there)
            for domain, there in self._areas.by_domain.items()
            if (free[:, there].sum(axis=1) >= asks).all() and self._have_devices(left, there)
        ]
        return [there for *_, there in sorted(roomy, key=lambda row: row[:4])[:NODES_TRIED]]

    def _have_devices(self, left: Sequence[Pod], there: Bools) -> bool:
        """Whether these nodes have them for all."""
        return all(self._devices[name].free[there].sum() >= sum(each) for name, each in self._in_devices(left).items())

    def _on_nodes(self, left: list[Pod], most: int, within: Bools | None) -> list[Pod]:
        """On so many nodes at most, of these; who does not fit there is left."""
        self._within, nodes = within, 0
        while left and nodes < most:
            before, nodes = len(left), nodes + 1
            left = self._on_next_node(left)
            if len(left) == before:
                break
        self._within = None
        return left

    def _in_slots(self, left: list[Pod]) -> list[Pod]:
        """Where the plan by traffic has them."""
        vacant = {
            name: [place for place, count in self._slots.get(name, ()) for _ in range(count)]
            for name in {pod.workload for pod in left}
        }
        rest = []
        for pod in left:
            place = vacant[pod.workload].pop(0) if vacant[pod.workload] else None
            at = self._position(place) if place is not None else None
            if at is not None and self._holds([pod], pod.asks, at):
                self._take([pod], at)
            else:
                rest.append(pod)
        return rest

    def _position(self, place: NumaPlace) -> int | None:
        if place.node not in self._index or place.node in self._barred():
            return None
        numa_node = self._rooms.numa_node.ravel()
        return next((at for at in self._of_node(place.node) if numa_node[at] == place.numa_node), None)

    def _holds(self, pods: Sequence[Pod], asks: CpuMemoryPods, at: int) -> bool:
        """Whether they may all go there, and it has room for so much."""
        free = self._free(at)
        roomy = bool(self._have_room(pods, asks, free, self._freed[:, at]))
        roomy = roomy and all(self._pages[size][at] >= amount for size, amount in self._in_pages(pods).items())
        roomy = roomy and self._has_devices(pods, at)
        roomy = roomy and bool(self._have_overhead(pods, asks, self._rooms.left[:, at // self._width]))
        return roomy and all(self._open(where)[at // self._width] for where in self._wheres(pods))

    def _free(self, at: int) -> tuple[Floats, Floats, Floats]:
        return self._cpu[at], self._memory[at], self._pods[at // self._width]

    def _have_room(self, pods: Sequence[Pod], asks: CpuMemoryPods, free: Sequence[Floats], freed: Floats) -> Bools:
        """Of the NUMA nodes whose figures these are, rows of CPU, memory and pods."""
        roomy = _within(self._now(pods, asks), free)
        if self._coming.freed:
            free = [now + later for now, later in zip(free, freed, strict=True)]
            roomy &= _within(asks, free)
        return roomy & (free[0] >= LEAST)

    def _have_overhead(self, pods: Sequence[Pod], asks: CpuMemoryPods, left: Floats) -> Bools:
        """Whether nodes have what the pods take beside all that they ask for. left: as `FreeRoom` has it. Those that
        come in others' place find what these took.
        """
        new = [pod.overhead for pod in pods if not (self._coming.freed and pod.uid in self._later)]
        cpu, memory = sum(cpu for cpu, _ in new), sum(memory for _, memory in new)
        if not (cpu or memory):
            return np.ones(1, dtype=np.bool_)
        now = self._now(pods, asks)
        enough: Bools = (left[0] >= now[0] + cpu) & (left[1] >= now[1] + memory)
        return enough

    def _now(self, pods: Sequence[Pod], asks: CpuMemoryPods) -> CpuMemoryPods:
        """What of it has to have room before others leave theirs."""
        if not self._coming.freed:
            return asks
        (cpu, memory, count), ahead = summed([pod for pod in pods if pod.uid in self._later]), self._ahead
        return max(ahead[0], asks[0] - cpu), max(ahead[1], asks[1] - memory), max(ahead[2], asks[2] - count)

    def _has_devices(self, pods: Sequence[Pod], at: int) -> bool:
        node, home = divmod(at, self._width)
        asked = self._in_devices(pods).items()
        return all(bool(self._devices[name].on(node).hold(each)[0, home]) for name, each in asked)

    def _in_devices(self, pods: Sequence[Pod], beyond: Devices = ()) -> Mapping[str, list[int]]:
        """How many each of them asks for that asks for some, by resource. beyond: that others may ask for."""
        asked: dict[str, list[int]] = {}
        if self._devices:
            for name, count in chain(beyond, *(pod.devices for pod in pods)):
                asked.setdefault(name, []).append(count)
        return asked

    def _in_pages(self, pods: Sequence[Pod]) -> Mapping[int, int]:
        """What they ask for in hugepages of each size that somebody asks for."""
        return _summed_pages(pods) if self._pages else {}

    def _wheres(self, pods: Sequence[Pod]) -> Collection[NodeSet]:
        return {pod.where for pod in pods} if self._bound else ()

    def _open_to_any(self, pods: Sequence[Pod]) -> Bools:
        """The nodes where some of them may go."""
        if not self._bound:
            return self._open(ANYWHERE)
        found = np.zeros(len(self._index), dtype=np.bool_)
        for where in {pod.where for pod in pods}:
            found |= self._open(where)
        return found

    def _with_beyond(self, pods: Sequence[Pod]) -> CpuMemoryPods:
        (cpu, memory, count), more = summed(pods), self._coming.beyond
        return cpu + more[0], memory + more[1], count + more[2]

    def _for_alike(self, asks: CpuMemoryPods) -> Floats:
        """Millicores that as many pods as each node takes would ask for, were all as large as these."""
        found: Floats = self._pods * (max(LEAST, asks[0]) / max(1, asks[2]))
        return found

    def _beside_members(self, left: list[Pod]) -> list[Pod]:
        """Beside them, or beside those that are replaced, whose room they get: as more of it is together."""
        if not self._coming.going:
            return self._beside(left, self._members())
        before, ways = self._state(), []
        for there in (self._members(), Counter(self._coming.going)):
            rest = self._beside(left, there)
            ways.append((self._coming.worth(self._places), rest, self._state()))
            self._restore(before)
        _, rest, after = max(ways, key=lambda way: way[0])
        self._restore(after)
        return rest

    def _beside(self, left: list[Pod], there: Counter[NumaPlace]) -> list[Pod]:
        """Where most of those are first, then on the other NUMA nodes of these nodes; or all of it elsewhere on one
        NUMA node, where more pairs are together so.
        """
        here, members = Counter[str](), self._members()
        for place, count in there.items():
            here[place.node] += count
        before, coming = self._state(), left
        for node, _ in sorted(here.items(), key=lambda row: (-row[1], row[0])):
            if node in self._index and node not in self._barred():
                mine = {place.numa_node: count for place, count in there.items() if place.node == node}
                numa_node = self._rooms.numa_node.ravel()
                order = sorted(self._of_node(node), key=lambda at: (-mine.get(int(numa_node[at]), 0), -self._cpu[at]))
                left = self._fill(left, order)
        beside = self._members()
        if left and pairs(beside.values()) + len(left) ** 2 < pairs(members.values()) + len(coming) ** 2:
            kept = self._state()
            self._restore(before)
            if (home := self._tightest(coming, self._with_beyond(coming), self._coming.beyond_devices)) is not None:
                return self._take(coming, home)
            self._restore(kept)
        return left

    def _home(self, pods: Sequence[Pod]) -> int | None:
        """The NUMA node for all of them; while the group grows, the one where most can follow."""
        asks, devices = self._with_beyond(pods), self._coming.beyond_devices
        if not self._coming.grows:
            return self._tightest(pods, asks, devices)
        fits, groups = self._fits(pods, asks, devices), self._rooms.groups.reshape(-1)
        if not fits.any():
            return None
        room = np.minimum(self._cpu, np.repeat(self._for_alike(asks), self._width))
        home = int(np.where(fits, (room - asks[0]) / (groups + 1), -np.inf).argmax())
        groups[home] += 1
        return home

    def _tightest(self, pods: Sequence[Pod], asks: CpuMemoryPods, devices: Devices = ()) -> int | None:
        """The NUMA node that holds so much with least left over, where they may all go. devices: beside their own."""
        fits = self._fits(pods, asks, devices)
        return int(np.where(fits, self._cpu, np.inf).argmin()) if fits.any() else None

    def _fits(self, pods: Sequence[Pod], asks: CpuMemoryPods, devices: Devices = ()) -> Bools:
        rooms = self._rooms
        free = rooms.cpu, rooms.memory, self._pods[:, None]
        fits = self._have_room(pods, asks, free, self._freed.reshape(3, *rooms.cpu.shape))
        for size, amount in self._in_pages(pods).items():
            fits &= rooms.pages[size] >= amount
        for name, each in self._in_devices(pods, devices).items():
            fits &= self._devices[name].hold(each)
        fits &= self._have_overhead(pods, asks, rooms.left[:, :, None])
        for where in self._wheres(pods):
            fits &= self._open(where)[:, None]
        for node in self._barred():
            if node in self._index:
                fits[self._index[node]] = False
        if self._within is not None:
            fits &= self._within[:, None]
        return fits.reshape(-1)

    def _on_next_node(self, left: list[Pod]) -> list[Pod]:
        """On the node that holds the most of it, over the fewest NUMA nodes; those that do not fit there are left."""
        if self._places and (home := self._tightest(left, summed(left))) is not None:
            return self._take(left, home)
        best: list[Pod] | None = None
        for node in self._most_promising(left):
            before = self._state()
            rest = self._fill(left, self._roomiest_first(node, left))
            if not rest:
                return rest
            if best is None or len(rest) < len(best):
                best, kept = rest, self._state()
            self._restore(before)
        if best is None:
            return left
        self._restore(kept)
        return best

    @property
    def _values(self) -> list[Floats]:
        devices = (each.free for each in self._devices.values())
        return [self._cpu, self._memory, self._freed, self._rooms.left, *self._pages.values(), *devices]

    def _state(self) -> tuple[list[Floats], dict[str, NumaPlace]]:
        return [values.copy() for values in self._values], dict(self._places)

    def _restore(self, state: tuple[list[Floats], dict[str, NumaPlace]]) -> None:
        for values, before in zip(self._values, state[0], strict=True):
            values[:] = before
        self._places = state[1]

    def _most_promising(self, left: Sequence[Pod]) -> list[str]:
        """Nodes by how many of the devices they have, then by how much of all pairs would be on one NUMA node there, as
        far as CPU and their number tell; of those alike, those near where most of it is.
        """
        asks = self._with_beyond(left)
        need = np.minimum(asks[0], self._for_alike(asks))[:, None]
        free = np.sort(np.maximum(self._rooms.cpu, 0.0), axis=1)[:, ::-1]
        before = np.cumsum(free, axis=1) - free
        taken = np.clip(need - before, 0.0, free)
        together = (taken**2).sum(axis=1)
        for node in self._barred():
            if node in self._index:
                together[self._index[node]] = 0.0
        together[~self._open_to_any(left)] = 0.0
        if self._within is not None:
            together[~self._within] = 0.0
        spare = free.sum(axis=1) - taken.sum(axis=1)
        near = np.zeros(len(spare))
        for area in self._around():
            near += area
        served = np.zeros(len(spare))
        for name, each in self._in_devices(left).items():
            served += np.where(together > 0, _served(self._devices[name].free.sum(axis=1), each), 0.0)
        order = np.lexsort((spare, -near, -np.round(together / max(1, asks[0]) ** 2, 6), -served))[:NODES_TRIED]
        return [self._rooms.nodes[at] for at in order.tolist() if together[at] > 0]

    def _of_node(self, node: str) -> range:
        first = self._index[node] * self._width
        return range(first, first + self._width)

    def _roomiest_first(self, node: str, left: Sequence[Pod]) -> list[int]:
        """Of those alike in devices."""
        places = self._of_node(node)
        served = np.zeros(self._width)
        for name, each in self._in_devices(left).items():
            served += _served(self._devices[name].on(self._index[node]).by_numa_node[0], each)
        return sorted(places, key=lambda at: (-served[at - places.start], -self._cpu[at]))

    def _fill(self, left: list[Pod], order: Sequence[int]) -> list[Pod]:
        """One NUMA node after the other; all on the first one that holds all that is left."""
        for at in order:
            if left and self._holds(left, self._with_beyond(left), at):
                return self._take(left, at)
            left = self._piece(left, at)
        return left

    def _piece(self, left: list[Pod], at: int) -> list[Pod]:
        """As many as fit, those that talk with each other first."""
        if self._cpu[at] + self._freed[0, at] <= 0 or not left:
            return left
        rest = []
        for pod in _by_ties(left, self._pulls):
            if self._holds([pod], pod.asks, at):
                self._take([pod], at)
            else:
                rest.append(pod)
        return rest

    def _take(self, pods: Sequence[Pod], at: int) -> list[Pod]:
        """Of what is free first: those that are about to leave may take long to end."""
        place = self._rooms.place(at)
        for pod in pods:
            self._places[pod.uid] = place
            asks, overhead = pod.asks, pod.overhead
            if pod.uid in self._later and self._coming.freed:
                overhead = (0, 0)
                freed = np.clip(asks - np.maximum(0, self._free(at)), 0, self._freed[:, at])
                self._freed[:, at] -= freed
                asks = asks[0] - int(freed[0]), asks[1] - int(freed[1]), asks[2] - int(freed[2])
            self._rooms.take(at // self._width, at % self._width, asks, pod.pages, pod.devices, overhead=overhead)
        return []


def _within(asks: CpuMemoryPods, free: Sequence[Floats]) -> Bools:
    within: Bools = (free[0] >= asks[0]) & (free[1] >= asks[1]) & (free[2] >= asks[2])
    return within


def _summed_pages(pods: Iterable[Pod]) -> Counter[int]:
    total = Counter[int]()
    for pod in pods:
        for size, amount in pod.pages:
            total[size] += amount
    return total


def _served(free: Floats, asked: Sequence[int]) -> Floats:
    """How many of the devices that pods ask for are there; none where no pod has enough."""
    served: Floats = np.where(free >= min(asked), np.minimum(free, sum(asked)), 0.0)
    return served


def _fewest(free: Floats, asks: CpuMemoryPods) -> int:
    """How many nodes it takes, the roomiest first. free: as `FreeRoom.of_nodes`."""
    sums = np.cumsum(np.sort(free, axis=1)[:, ::-1], axis=1)
    return max(int(np.searchsorted(row, need)) for row, need in zip(sums, asks, strict=True))


def _by_ties(pods: Sequence[Pod], pulls: Pulls) -> list[Pod]:
    """In an order in which each is drawn most by those before it, for what it asks; where nothing is known, workload by
    workload, the smallest first. Those first that ask for devices, which are not everywhere.
    """
    of_workload: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        of_workload[pod.workload].append(pod)
    size = {name: sum(pod.asks[0] for pod in alike) for name, alike in of_workload.items()}
    led = {pod.workload for pod in pods if pod.devices}
    names = sorted(of_workload, key=lambda name: (name not in led, size[name], name))
    if not any(pulls.get(name) for name in names):
        return [pod for name in names for pod in of_workload[name]]
    drawn = dict.fromkeys(names, 0.0)
    ordered: list[Pod] = []
    alone = {name: sum(pulls.get(name, {}).get(other, 0.0) for other in names) for name in names}
    left = dict.fromkeys(names)
    while left:
        chosen = max(
            left,
            key=lambda name: (name in led, drawn[name] / max(1, size[name]), alone[name] / max(1, size[name])),
        )
        del left[chosen]
        ordered += of_workload[chosen]
        for other, weight in pulls.get(chosen, {}).items():
            if other in drawn:
                drawn[other] += weight * len(of_workload[chosen])
    return ordered
