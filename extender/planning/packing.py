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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np

from extender.planning.coming import Coming, Pod
from extender.planning.group_packing import GroupPacking, NodeAreas, PackingInput, Pulls
from extender.planning.group_plan import Vacancy
from extender.state.columns.arrays import Floats
from extender.state.columns.free_room import FreeRoom, NumaPlace
from extender.state.node_domains import NO_DOMAINS, NodeDomains

MOST_GROUPS = 2_000
"""Groups of one plan, the largest first, some 0.4 ms each: the pods of the others are placed one by one."""

NO_PULLS: Pulls = {}
NO_SLOTS: Mapping[str, Sequence[Vacancy]] = {}
NOWHERE: Mapping[str, NumaPlace] = {}

EPSILON = 1e-9


def pack(
    groups: Iterable[Coming],
    rooms: FreeRoom,
    pulls: Pulls = NO_PULLS,
    slots: Mapping[str, Sequence[Vacancy]] = NO_SLOTS,
    *,
    domains: NodeDomains = NO_DOMAINS,
    before: Mapping[str, NumaPlace] = NOWHERE,
    tried: Iterable[tuple[Pod, NumaPlace]] = (),
) -> dict[str, dict[str, NumaPlace]]:
    """By group the place of each pod, of those to come too; without pods for which there is no room. slots: by
    workload, as a plan by known traffic has them. domains: which nodes are near each other. before: by pod, as they
    were packed last. tried: pods of these groups that have their places, of room that counts as free. Same arguments,
    same places.
    """
    index = {name: at for at, name in enumerate(rooms.nodes)}
    rooms.bound()
    for pod, place in tried:
        for node, at in _found(place, index, rooms):
            rooms.take(node, at, pod.asks, pod.pages, pod.devices, overhead=pod.overhead)
    plan = _Plan(PackingInput(rooms, index, NodeAreas(rooms.nodes, domains), pulls, slots, before))
    order = sorted(
        groups,
        key=lambda coming: (-coming.priority, *coming.urgency, not coming.led, -coming.asks[0], coming.group),
    )
    for _, alike in groupby(order[:MOST_GROUPS], key=lambda coming: coming.priority):
        plan.add([*alike])
    return plan.packed


class _Plan:
    """Of the groups of one priority after the other. packed: by group the place of each pod."""

    def __init__(self, given: PackingInput) -> None:
        self._given, self._rooms = given, given.rooms
        self.packed: dict[str, dict[str, NumaPlace]] = {}

    def add(self, groups: Sequence[Coming]) -> None:
        """groups: of one priority, those with members first, then the largest first."""
        begun, others = ([coming for coming in groups if coming.begun is there] for there in (True, False))
        ways = [lambda: self._whole_first(others), lambda: self._in_turn(others)]
        if any(pod.uid in self._given.before for coming in others for pod in coming.all):
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
            worth = sum(coming.worth(self.packed[coming.group]) for coming in groups)
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

    def _packing(self, coming: Coming) -> GroupPacking:
        return GroupPacking(self._given, coming, lambda: self._elsewhere(coming))

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
        return [rooms.cpu, rooms.memory, rooms.groups, rooms.left, *rooms.pages.values(), *devices]


def _found(place: NumaPlace, index: Mapping[str, int], rooms: FreeRoom) -> Iterable[tuple[int, int]]:
    """Its node and its position there, where there is such a NUMA node."""
    node = index.get(place.node)
    if node is not None:
        for at in np.flatnonzero(rooms.numa_node[node] == place.numa_node).tolist():
            yield node, at
