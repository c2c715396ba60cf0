"""Where the pods of groups that wait for nodes should go together: best fit by whole groups.

Pod by pod, the first one takes the room that another group needs to be whole. So all groups that wait are packed
at once, those that have members already and cannot choose first, then the largest first. A group goes to the NUMA node
that holds all of it and has least left over; else to the node that holds it, over the fewest NUMA nodes and those on
which most of it is on one; else to the fewest nodes of the nearest domain that holds it (a rack, a zone); else to the
fewest nodes, as near each other as there is room. Where some are cut so, others might have been whole on what their
pieces take. So there are several plans, in which those that a NUMA node holds go before those that are cut, or do not,
or all are as they were planned before; the one counts that brings the groups together most.

Devices lead: a pod goes where those that it asks for are free, and no pod of a later group gets them; groups that ask
for some choose before those that do not.

Where a group is cut, its pods are taken in such an order that those that talk with each other are on one side, or,
where nothing is known of that, workload by workload, the smallest first: as much as possible of what talks then fits
beside each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from extender.planning.group_plan import Vacancy
from extender.state.admission import ANYWHERE, NodeSet
from extender.state.columns.arrays import Bools, Floats
from extender.state.columns.free_room import FreeRoom, NumaPlace
from extender.state.node_domains import NO_DOMAINS, NodeDomain, NodeDomains
from numakin.placement.model.live_usage import Devices
from numakin.placement.plan.problem import CpuAndMemory

MOST_GROUPS = 500
"""Groups of one plan, the largest first, some 0.1 ms each: the pods of the others are placed one by one."""

LEAST = 1
"""Millicores that a NUMA node has free for a pod that asks for none: those without any take no pod."""

NODE_WORTH = 0.3
"""What two pods are worth to each other on a node, where on one NUMA node it is 1."""

NODES_TRIED = 8
"""Nodes on which a group that no NUMA node holds is tried, pod by pod: sums may fit where the pods do not."""

EVERYWHERE: Bools | None = None

NOTHING: Mapping[NumaPlace, CpuAndMemory] = {}
NO_SLOTS: Mapping[str, Sequence[Vacancy]] = {}
NOWHERE: Mapping[str, NumaPlace] = {}

EPSILON = 1e-9

NONE: CpuAndMemory = (0, 0)

Pulls = Mapping[str, Mapping[str, float]]
"""What two workloads exchange, by both."""

NO_PULLS: Pulls = {}


class Pod(NamedTuple):
    """One that waits. asks: what it is expected to take; no NUMA node holds more than it has. where: it may go.
    pages: bytes that it asks for in hugepages, by their size. devices: of each resource.
    """

    uid: str
    workload: str
    asks: CpuAndMemory
    where: NodeSet = ANYWHERE
    pages: tuple[tuple[int, int], ...] = ()
    devices: Devices = ()


@dataclass(frozen=True, slots=True)
class Coming:
    """What is still to come of a group. beyond, beyond_devices: of members that may come, and have to find room as
    well. here: how many members are on each NUMA node. barred: nodes where it may not go. priority: its highest.
    grows: more of it was created a moment ago, so that it is not known how large it will be. later: pods that are about
    to be created: they are planned beside the others, and no group of the same plan gets their room. apart_from:
    others, as `group` names them, with which it shares no node. going: how many members on each NUMA node are about to
    be replaced, which do not count as here; freed: the room that they have until then, for those that come later alone.
    ahead: what may come before they have left it.
    """

    group: str
    pods: Sequence[Pod]
    beyond: CpuAndMemory = (0, 0)
    here: Mapping[NumaPlace, int] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    priority: int = 0
    grows: bool = False
    later: Sequence[Pod] = ()
    apart_from: frozenset[str] = frozenset()
    beyond_devices: Devices = ()
    going: Mapping[NumaPlace, int] = field(default_factory=dict)
    freed: Mapping[NumaPlace, CpuAndMemory] = field(default_factory=dict)
    ahead: CpuAndMemory = (0, 0)

    @property
    def begun(self) -> bool:
        """Whether it has members, so that it cannot choose as others can."""
        return bool(self.here or self.going)

    @property
    def urgency(self) -> tuple[bool, bool]:
        """The less it can choose, the sooner its turn is."""
        return not self.here, not self.going

    @property
    def all(self) -> list[Pod]:
        """Those that are planned."""
        return [*self.pods, *self.later]

    @property
    def asks(self) -> CpuAndMemory:
        return _sum(self.all)

    @property
    def led(self) -> bool:
        """Whether devices say where it can be."""
        return bool(self.beyond_devices) or any(pod.devices for pod in self.all)


def pack(
    groups: Iterable[Coming],
    rooms: FreeRoom,
    pulls: Pulls = NO_PULLS,
    held: Mapping[NumaPlace, CpuAndMemory] = NOTHING,
    slots: Mapping[str, Sequence[Vacancy]] = NO_SLOTS,
    *,
    domains: NodeDomains = NO_DOMAINS,
    before: Mapping[str, NumaPlace] = NOWHERE,
    tried: Iterable[tuple[Pod, NumaPlace]] = (),
) -> dict[str, dict[str, NumaPlace]]:
    """By group the place of each pod, of those to come too; without pods for which there is no room. held: what these
    groups have of the room that is not free. slots: by workload, as a plan by known traffic has them. domains: which
    nodes are near each other. before: by pod, as they were packed last. tried: pods of these groups that have their
    places, of room that counts as free. Same arguments, same places.
    """
    index = {name: at for at, name in enumerate(rooms.nodes)}
    for place, (cpu, memory) in held.items():
        if (node := index.get(place.node)) is not None:
            at = rooms.numa_node[node] == place.numa_node
            rooms.cpu[node, at] += cpu
            rooms.memory[node, at] += memory
    for pod, place in tried:
        if (node := index.get(place.node)) is not None:
            for at in np.flatnonzero(rooms.numa_node[node] == place.numa_node).tolist():
                rooms.take(node, at, pod.asks, pod.pages, pod.devices)
    plan = _Plan(_Given(rooms, index, _Areas(rooms.nodes, domains), pulls, slots, before))
    order = sorted(
        groups,
        key=lambda coming: (-coming.priority, *coming.urgency, not coming.led, -coming.asks[0], coming.group),
    )
    for _, alike in groupby(order[:MOST_GROUPS], key=lambda coming: coming.priority):
        plan.add([*alike])
    return plan.packed


@dataclass(frozen=True, slots=True)
class _Given:
    """What `pack` is given. index: of each node in rooms."""

    rooms: FreeRoom
    index: Mapping[str, int]
    areas: _Areas
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


class _Plan:
    """Of the groups of one priority after the other. packed: by group the place of each pod."""

    def __init__(self, given: _Given) -> None:
        self._given, self._rooms = given, given.rooms
        self.packed: dict[str, dict[str, NumaPlace]] = {}

    def add(self, groups: Sequence[Coming]) -> None:
        """groups: of one priority, those with members first, then the largest first."""
        begun, others = ([coming for coming in groups if coming.begun is there] for there in (True, False))
        ways = [lambda: self._whole_first(others), lambda: self._in_turn(others)]
        if any(pod.uid in self._given.before for coming in others for pod in coming.pods):
            ways.append(lambda: self._as_before(others))

        def after(pack_begun: Callable[[Sequence[Coming]], None]) -> Callable[[], None]:
            def way() -> None:
                pack_begun(begun)
                self._best(others, ways)

            return way

        self._best(groups, (after(self._as_before), *((after(self._in_turn),) if begun else ())))

    def _best(self, groups: Sequence[Coming], ways: Iterable[Callable[[], None]]) -> None:
        """Goes the way that brings the groups together most, the first of those alike."""
        start, best = self._state(), -1.0
        for way in ways:
            self._restore(start)
            way()
            worth = sum(_together(coming, self.packed[coming.group]) for coming in groups)
            if worth > best + EPSILON:
                best, kept = worth, self._state()
            if worth > len(groups) - EPSILON:
                break
        self._restore(kept)

    def _in_turn(self, groups: Iterable[Coming]) -> None:
        for coming in groups:
            self.packed[coming.group] = self._packing(coming).places()

    def _whole_first(self, groups: Iterable[Coming]) -> None:
        """Those first that a NUMA node holds."""
        cut = []
        for coming in groups:
            whole = self._packing(coming).whole()
            self.packed[coming.group] = whole
            if not whole:
                cut.append(coming)
        self._in_turn(cut)

    def _as_before(self, groups: Sequence[Coming]) -> None:
        """Each pod where it was planned last, as far as there is room, then the others."""
        packings = [self._packing(coming) for coming in groups]
        for coming, packing in zip(groups, packings, strict=True):
            if coming.begun or not coming.grows:
                self.packed[coming.group] = packing.stay()
        for coming, packing in zip(groups, packings, strict=True):
            self.packed[coming.group] = packing.places()

    def _packing(self, coming: Coming) -> _Packing:
        return _Packing(self._given, coming, lambda: self._elsewhere(coming))

    def _elsewhere(self, coming: Coming) -> frozenset[str]:
        """The nodes where it may not go by now."""
        if not coming.apart_from:
            return coming.barred
        apart = (self.packed.get(other, NOWHERE) for other in coming.apart_from)
        return coming.barred.union(place.node for places in apart for place in places.values())

    def _state(self) -> tuple[list[Floats], dict[str, dict[str, NumaPlace]]]:
        return [values.copy() for values in self._values], dict(self.packed)

    def _restore(self, state: tuple[list[Floats], dict[str, dict[str, NumaPlace]]]) -> None:
        for values, before in zip(self._values, state[0], strict=True):
            values[:] = before
        self.packed = dict(state[1])

    @property
    def _values(self) -> list[Floats]:
        rooms = self._rooms
        devices = (each.free for each in rooms.devices.values())
        return [rooms.cpu, rooms.memory, rooms.groups, *rooms.pages.values(), *devices]


@dataclass(frozen=True)
class _Areas:
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


class _Packing:
    """Of one group."""

    def __init__(self, given: _Given, coming: Coming, barred: Callable[[], Collection[str]]) -> None:
        self._coming, self._rooms, self._index, self._open = coming, given.rooms, given.index, given.open
        self._barred = barred
        self._areas, self._pulls, self._slots, self._before = given.areas, given.pulls, given.slots, given.before
        rooms = given.rooms
        self._within: Bools | None = None
        self._cpu, self._memory = rooms.cpu.reshape(-1), rooms.memory.reshape(-1)
        self._pages = {size: free.reshape(-1) for size, free in rooms.pages.items()}
        self._devices = rooms.devices if coming.led else {}
        self._places: dict[str, NumaPlace] = {}
        self._width = rooms.cpu.shape[1]
        self._bound = any(pod.where is not ANYWHERE for pod in coming.all)
        self._later = frozenset(pod.uid for pod in coming.later)
        self._ahead = NONE
        self._freed = np.zeros((2, len(self._cpu)))
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
        for pod in self._coming.pods:
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
        """All of it where most of it was, if there is room for what comes before the others have left; else on another
        NUMA node; else where it was by and by.
        """
        self._ahead = self._coming.ahead
        home = self._old_home(left)
        self._ahead = NONE
        if home is None:
            home = self._old_home(left)
        return self._take(left, home) if home is not None else self._beside(left, Counter(self._coming.going))

    def _old_home(self, pods: Sequence[Pod]) -> int | None:
        """The NUMA node that holds them all, of those that they come to again first."""
        fits = self._fits(pods, self._with_beyond(pods), self._coming.beyond_devices)
        homes = (self._position(place) for place, _ in Counter(self._coming.going).most_common())
        home = next((at for at in homes if at is not None and fits[at]), None)
        return home if home is not None else self._near_home(pods)

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
        cpu, memory = self._with_beyond(left)
        free = np.maximum(self._rooms.cpu, 0.0).sum(axis=1) * self._open_to_any(left)
        roomy: Bools = (free >= cpu) & (self._rooms.memory.sum(axis=1) >= memory)
        return roomy

    def _holding(self, left: Sequence[Pod]) -> list[Bools]:
        """The domains whose nodes have room for all as far as sums tell, the nearest first, of those alike those where
        it takes the fewest nodes, and then with least left over.
        """
        if not left or not self._areas.domains.of_node:
            return []
        cpu, memory = self._with_beyond(left)
        free = np.maximum(self._rooms.cpu, 0.0).sum(axis=1) * self._open_to_any(left)
        holds = self._rooms.memory.sum(axis=1)
        roomy = [
            (domain[0], _fewest(free[there], cpu), float(free[there].sum()), int(there.argmax()), there)
            for domain, there in self._areas.by_domain.items()
            if free[there].sum() >= cpu and holds[there].sum() >= memory and self._have_devices(left, there)
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

    def _holds(self, pods: Sequence[Pod], asks: CpuAndMemory, at: int) -> bool:
        """Whether they may all go there, and it has room for so much."""
        now = self._now(pods, asks)
        roomy = self._cpu[at] >= now[0] and self._memory[at] >= now[1]
        cpu, memory = self._cpu[at] + self._freed[0, at], self._memory[at] + self._freed[1, at]
        roomy = bool(roomy and cpu >= max(LEAST, asks[0]) and memory >= asks[1])
        roomy = roomy and all(self._pages[size][at] >= amount for size, amount in self._in_pages(pods).items())
        roomy = roomy and self._has_devices(pods, at)
        return roomy and all(self._open(where)[at // self._width] for where in self._wheres(pods))

    def _now(self, pods: Sequence[Pod], asks: CpuAndMemory) -> CpuAndMemory:
        """What of it has to have room before others leave theirs."""
        if not self._coming.freed:
            return asks
        later = _sum([pod for pod in pods if pod.uid in self._later])
        return max(self._ahead[0], asks[0] - later[0]), max(self._ahead[1], asks[1] - later[1])

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

    def _with_beyond(self, pods: Sequence[Pod]) -> CpuAndMemory:
        (cpu, memory), more = _sum(pods), self._coming.beyond
        return cpu + more[0], memory + more[1]

    def _beside_members(self, left: list[Pod]) -> list[Pod]:
        """Beside them, or beside those that are replaced, whose room they get: as more of it is together."""
        if not self._coming.going:
            return self._beside(left, self._members())
        before, ways = self._state(), []
        for there in (self._members(), Counter(self._coming.going)):
            rest = self._beside(left, there)
            ways.append((_together(self._coming, self._places), rest, self._state()))
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
        if left and _pairs(beside.values()) + len(left) ** 2 < _pairs(members.values()) + len(coming) ** 2:
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
        home = int(np.where(fits, (self._cpu - asks[0]) / (groups + 1), -np.inf).argmax())
        groups[home] += 1
        return home

    def _tightest(self, pods: Sequence[Pod], asks: CpuAndMemory, devices: Devices = ()) -> int | None:
        """The NUMA node that holds so much with least left over, where they may all go. devices: beside their own."""
        fits = self._fits(pods, asks, devices)
        return int(np.where(fits, self._cpu, np.inf).argmin()) if fits.any() else None

    def _fits(self, pods: Sequence[Pod], asks: CpuAndMemory, devices: Devices = ()) -> Bools:
        now = self._now(pods, asks)
        fits: Bools = (self._cpu + self._freed[0] >= max(LEAST, asks[0])) & (self._memory + self._freed[1] >= asks[1])
        fits &= (self._cpu >= now[0]) & (self._memory >= now[1])
        for size, amount in self._in_pages(pods).items():
            fits &= self._pages[size] >= amount
        for name, each in self._in_devices(pods, devices).items():
            fits &= self._devices[name].hold(each).reshape(-1)
        for where in self._wheres(pods):
            fits &= np.repeat(self._open(where), self._width)
        for node in self._barred():
            if node in self._index:
                fits[self._of_node(node)] = False
        if self._within is not None:
            fits &= np.repeat(self._within, self._width)
        return fits

    def _on_next_node(self, left: list[Pod]) -> list[Pod]:
        """On the node that holds the most of it, over the fewest NUMA nodes; those that do not fit there are left."""
        if self._places and (home := self._tightest(left, _sum(left))) is not None:
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
        return [self._cpu, self._memory, self._freed, *self._pages.values(), *devices]

    def _state(self) -> tuple[list[Floats], dict[str, NumaPlace]]:
        return [values.copy() for values in self._values], dict(self._places)

    def _restore(self, state: tuple[list[Floats], dict[str, NumaPlace]]) -> None:
        for values, before in zip(self._values, state[0], strict=True):
            values[:] = before
        self._places = state[1]

    def _most_promising(self, left: Sequence[Pod]) -> list[str]:
        """Nodes by how many of the devices they have, then by how much of all pairs would be on one NUMA node there, as
        far as CPU tells; of those alike, those near where most of it is.
        """
        need = self._with_beyond(left)[0]
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
        order = np.lexsort((spare, -near, -np.round(together / max(1, need) ** 2, 6), -served))[:NODES_TRIED]
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
        if self._cpu[at] <= 0 or not left:
            return left
        rest = []
        for pod in _by_ties(left, self._pulls):
            if self._holds([pod], pod.asks, at):
                self._take([pod], at)
            else:
                rest.append(pod)
        return rest

    def _take(self, pods: Sequence[Pod], at: int) -> list[Pod]:
        place = self._rooms.place(at)
        for pod in pods:
            self._places[pod.uid] = place
            asks = pod.asks
            if pod.uid in self._later and self._coming.freed:
                freed = np.minimum(self._freed[:, at], asks)
                self._freed[:, at] -= freed
                asks = asks[0] - int(freed[0]), asks[1] - int(freed[1])
            self._rooms.take(at // self._width, at % self._width, asks, pod.pages, pod.devices)
        return []


def _sum(pods: Sequence[Pod]) -> CpuAndMemory:
    return sum(pod.asks[0] for pod in pods), sum(pod.asks[1] for pod in pods)


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


def _fewest(free: Floats, need: int) -> int:
    """How many nodes it takes, the roomiest first. free: of each node."""
    return int(np.searchsorted(np.cumsum(np.sort(free)[::-1]), need))


def _together(coming: Coming, places: Mapping[str, NumaPlace]) -> float:
    """What it is worth to the group, of 1."""
    there, on_nodes = Counter(places.values()) + Counter(coming.here), Counter[str]()
    for place, count in there.items():
        on_nodes[place.node] += count
    total = sum(coming.here.values()) + len(coming.all)
    near = (1 - NODE_WORTH) * _pairs(there.values()) + NODE_WORTH * _pairs(on_nodes.values())
    return near / max(1, total**2)


def _pairs(counts: Iterable[int]) -> int:
    return sum(count * count for count in counts)


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
