"""Groups whose pods may not share a node, or a zone, with some of each other, as they say themselves: which may be
together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from extender.planning.allowed import AllowedNodes
from extender.state.admission import NodeSet
from extender.state.columns.free_room import NO_ROOM, CpuMemoryPods
from extender.state.pod_terms import HOST, PodKind

MOST_CELLS = 32
"""Zones, racks or the like that a group is planned in: each pod is tried in one after the other, some 0.05 ms each."""


@dataclass(slots=True)
class Piece:
    """Pods that may be on one node. node: where members are that they may be beside; empty: anywhere. kinds: with the
    members'. uids: in their order.
    """

    node: str = ""
    kinds: Counter[PodKind] = field(default_factory=Counter)
    uids: list[str] = field(default_factory=list)

    def takes(self, kind: PodKind) -> bool:
        if any(kind.excludes(other) for other in self.kinds):
            return False
        terms = {term for there in (kind, *self.kinds) for term in there.said.spread if term.key == HOST}
        return all(
            self._matching(term.selector.matches) + term.selector.matches(kind.labels) <= term.most for term in terms
        )

    def _matching(self, matches: Callable[[frozenset[tuple[str, str]]], bool]) -> int:
        return sum(count for kind, count in self.kinds.items() if not kind.ending and matches(kind.labels))


def pieces(pods: Mapping[str, PodKind], there: Mapping[str, Sequence[PodKind]]) -> list[Piece]:
    """As few as hold all, each as large as may be: first beside the members that are there, where most of them are.
    pods: by uid. there: by node, of its members.
    """
    nodes = sorted(there.items(), key=lambda row: (-len(row[1]), row[0]))
    found = [Piece(node, Counter(kinds)) for node, kinds in nodes]
    alike: dict[PodKind, list[str]] = defaultdict(list)
    for uid, kind in pods.items():
        alike[kind].append(uid)
    for kind, uids in sorted(alike.items(), key=lambda row: (HOST not in row[0].keys, -len(row[1]), row[1])):
        for uid in uids:
            piece = next((piece for piece in found if piece.takes(kind)), None)
            if piece is None:
                found.append(piece := Piece())
            piece.uids.append(uid)
            piece.kinds[kind] += 1
    return [piece for piece in found if piece.uids]


class Placeable(NamedTuple):
    """A pod: what it asks for, where it may go by what it says of nodes, and where it was planned last (empty:
    nowhere).
    """

    kind: PodKind
    asks: CpuMemoryPods
    where: NodeSet
    before: str = ""


@dataclass(slots=True)
class Cell:
    """Nodes that have the labels alike by which pods are kept apart. taken: of what is free there. there: how many of
    the group. uids: that go there.
    """

    nodes: frozenset[str]
    there: int = 0
    taken: CpuMemoryPods = NO_ROOM
    uids: list[str] = field(default_factory=list)


def into_cells(
    pods: Mapping[str, Placeable], cells: Sequence[Cell], allowed: AllowedNodes, free: Mapping[str, CpuMemoryPods]
) -> None:
    """One pod after the other, as kube-scheduler takes them: where it may go by then, has room, and most of the group
    is; of those alike where the rest has room too, where it was planned before, and then where most CPU is free. free:
    of the nodes. Those that may go nowhere are in none.
    """
    rooms, rest = _Rooms(_roomiest(cells, free), free), reduce(_sum, (pod.asks for pod in pods.values()), NO_ROOM)
    for uid, pod in pods.items():
        ranked, rest = rooms.ranked(pod, rest), _less(rest, pod.asks)
        for cell, node in ranked:
            if allowed.admits(pod.kind, node, but_hosts=True):
                cell.there += 1
                cell.taken = _sum(cell.taken, pod.asks)
                cell.uids.append(uid)
                allowed.add(pod.kind, node)
                break


def _sum(one: CpuMemoryPods, other: CpuMemoryPods) -> CpuMemoryPods:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _less(one: CpuMemoryPods, other: CpuMemoryPods) -> CpuMemoryPods:
    return one[0] - other[0], one[1] - other[1], one[2] - other[2]


def _roomiest(cells: Sequence[Cell], free: Mapping[str, CpuMemoryPods]) -> list[Cell]:
    """Those where the group is, and then those with most CPU."""
    if len(cells) <= MOST_CELLS:
        return [*cells]
    room = {id(cell): sum(free[node][0] for node in cell.nodes & free.keys()) - cell.taken[0] for cell in cells}
    return sorted(cells, key=lambda cell: (-cell.there, -room[id(cell)]))[:MOST_CELLS]


class _Rooms:
    def __init__(self, cells: Sequence[Cell], free: Mapping[str, CpuMemoryPods]) -> None:
        self._sorted = {id(cell): sorted(cell.nodes & free.keys()) for cell in cells}
        self._free = free
        self._cells, self._known = cells, dict[tuple[int, NodeSet], tuple[list[str], CpuMemoryPods]]()

    def ranked(self, pod: Placeable, rest: CpuMemoryPods) -> list[tuple[Cell, str]]:
        """Where it may go by what it says of nodes, the best first, each with such a node. rest: what it asks for, and
        those after it.
        """
        found: list[tuple[tuple[bool, int, bool, bool, float], Cell, str]] = []
        for cell in self._cells:
            nodes, room = self._of(cell, pod.where)
            if nodes:
                left = _less(room, cell.taken)
                fit, all_fit = min(_less(left, pod.asks)) >= 0, min(_less(left, rest)) >= 0
                found.append(((fit, cell.there, all_fit, pod.before in cell.nodes, left[0]), cell, nodes[0]))
        return [row[1:] for row in sorted(found, key=lambda row: row[0], reverse=True)]

    def _of(self, cell: Cell, where: NodeSet) -> tuple[list[str], CpuMemoryPods]:
        """The cell's nodes that are among these, and what is free there."""
        found = self._known.get((id(cell), where))
        if found is None:
            nodes = [node for node in self._sorted[id(cell)] if where.has(node)]
            found = self._known[id(cell), where] = nodes, reduce(_sum, (self._free[node] for node in nodes), NO_ROOM)
        return found


def in_turn(places: Iterable[tuple[str, PodKind, str]], allowed: AllowedNodes) -> set[str]:
    """Those that kube-scheduler lets go where they are planned, one after the other. places: uid, kind and node."""
    found = set[str]()
    for uid, kind, node in places:
        if allowed.admits(kind, node):
            allowed.add(kind, node)
            found.add(uid)
    return found
