"""The numbers of all nodes in one block, so that thousands of them are weighed without being put together first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress, repeat

import numpy as np

from extender.state.columns.arrays import Floats, Objects, Positions
from extender.state.columns.candidates import NO_KINS, Candidates, Views, Weighing
from extender.state.columns.cells import COLUMNS, EMPTY_NODE, Cells
from extender.state.columns.free_room import FreeDevices, FreeRoom, NumaPlace
from extender.state.columns.memo import SlotMemo
from extender.state.columns.needs import Needs
from extender.state.kins import Kins
from extender.state.node_domains import NO_DOMAINS, NodeDomain, NodeDomains, pull
from extender.state.node_view import NodeView
from numakin.placement.model.demand import Demand

FREE, WHOLE, LIMITED = map(COLUMNS.index, ("free", "whole", "limited"))

UNKNOWN = 0
"""The slot of all nodes that are not known, in which nothing fits."""

KEYS = 32
"""Kinds of pods of which the answers are kept: pods that come together are mostly alike."""

ANSWERED = 5
"""Numbers of an answer of each node, as `NodeScores.rows` has them."""

NOT_HELD: Mapping[NumaPlace, Demand] = {}

FEW = 4_000
"""NUMA nodes of all offered nodes, 1,000 nodes with four of them: so many are weighed as fast as they are recalled."""


class ColumnStore:
    """Under the cluster's lock. A block of columns x NUMA nodes x slots; each node has a slot while it is known.

    Views are in arrays, since the garbage collector goes through the items of lists and tuples, thousands for each pod
    that is scored, and stops every thread meanwhile.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._vacant: list[int] = []
        self._changed: dict[int, NodeView | None] = {}
        """Slots whose view may be new, and the one that their numbers are of."""
        self._views: Objects = np.full(64, None)
        self._count = UNKNOWN + 1
        self._received_at = np.full(64, -np.inf)
        self._placing = np.zeros(64, dtype=np.bool_)
        self._revisions, self._revision = np.zeros(64, dtype=np.intp), 0
        self._free_share, self._limited = np.zeros(64), np.zeros(64, dtype=np.bool_)
        self._requested = np.zeros((2, 64))
        """Millicores and bytes of each node."""
        self._block = _blank(64, 2)
        self._memo = SlotMemo(KEYS)
        self._domains, self._domain_ids = NO_DOMAINS, dict[NodeDomain, int]()
        self._near = np.zeros((0, 64), dtype=np.intp)
        """Labels x slots: the number of the node's domain, 0: it is in none."""

    @property
    def numa_nodes(self) -> int:
        width: int = self._block.shape[1]
        return width

    def put(self, view: NodeView) -> None:
        """The node's view from now on; its numbers are worked out when they are asked for."""
        slot = self._slots.get(view.name)
        if slot is None:
            slot = self._slots[view.name] = self._vacant.pop() if self._vacant else self._count
            self._count = max(self._count, slot + 1)
            self._grow(self._count, 0)
            self._locate(view.name, slot)
        self._show(slot, view)

    def located(self, domains: NodeDomains) -> None:
        """From now on nodes are near each other as these say."""
        self._domains, self._domain_ids = domains, {}
        self._near = np.zeros((len(domains.keys), len(self._views)), dtype=np.intp)
        for node, slot in self._slots.items():
            self._locate(node, slot)

    def received(self, node: str, at: float) -> None:
        """The node's enforcer sent something; nothing for a node that has no view."""
        slot = self._slots.get(node, UNKNOWN)
        if slot != UNKNOWN:
            self._received_at[slot] = at

    def drop(self, node: str) -> None:
        slot = self._slots.pop(node, None)
        if slot is not None:
            self._received_at[slot] = -np.inf
            self._show(slot, None)
            self._vacant.append(slot)

    def refresh(self) -> None:
        """Works out the numbers of the views that are new."""
        for slot, written in self._changed.items():
            if (view := self._views[slot]) is not written:
                self._write(slot, view)
        self._changed.clear()

    def candidates(
        self,
        names: Sequence[str],
        now: float,
        needs: Needs | None = None,
        *,
        kins: Kins = NO_KINS,
        unlike: Collection[str] = (),
        planned: str | None = None,
        own: str | None = None,
    ) -> Candidates:
        """What a pod finds of these nodes. unlike: names of nodes that are not like most, with the planned one."""
        self.refresh()
        slots = np.fromiter(map(self._slots.get, names, repeat(UNKNOWN)), np.intp, len(names))
        revisions, near = self._revisions[slots], self._among(names, slots, unlike)
        return Candidates(
            names=names,
            views=Views(self._views[slots]),
            ages=now - self._received_at[slots],
            placing=self._placing[slots],
            free_share=self._free_share[slots],
            limited=self._limited[slots],
            slots=slots,
            revisions=revisions,
            kins=kins,
            near=near.tolist(),
            slot=None if planned is None else self._position(slots, near, planned),
            own=next((at for at in near.tolist() if names[at] == own), None) if own else None,
            nearness=self._nearness(slots, kins),
            domains=self._domains,
            weighing=None if needs is None else self._weighing(needs, slots, revisions, near),
        )

    def live_views(self, now: float, timeout: float) -> list[NodeView]:
        """The views of all nodes where pods that start now would be placed. timeout: seconds of silence."""
        self.refresh()
        live = self._placing & (now - self._received_at < timeout)
        return [view for view in self._views[live].tolist() if view is not None]

    def free_room(
        self,
        now: float,
        timeout: float,
        but: Collection[str],
        allocatable: Callable[[str], tuple[float, float, float]],
        *,
        held: Mapping[NumaPlace, Demand] = NOT_HELD,
        sizes: Collection[int] = (),
        resources: Collection[str] = (),
    ) -> FreeRoom:
        """What is free on the live nodes, but for these: nothing where a NUMA node is hot. allocatable: of a node, less
        the pods that count there. held: for groups, which counts as free. sizes: of hugepages. resources: of devices.
        """
        self.refresh()
        live = self._placing & (now - self._received_at < timeout)
        live[[self._slots[node] for node in but if node in self._slots]] = False
        slots = np.flatnonzero(live)
        cells = Cells(*self._block.take(slots, axis=2).transpose(0, 2, 1))
        there = (cells.numa_node >= 0) & (cells.hot == 0)
        views = self._views[slots].tolist()
        left = np.array([allocatable(view.name) for view in views], dtype=np.float64).reshape(-1, 3).T.copy()
        milli, expected, memory = back = _held_on(views, cells.numa_node, held)
        left[:2] += back[[0, 2]].sum(axis=2) - self._requested[:, slots]
        return FreeRoom(
            nodes=[view.name for view in views],
            numa_node=np.ascontiguousarray(cells.numa_node),
            cpu=np.ascontiguousarray(np.where(there, np.minimum(cells.free + milli, cells.unused + expected), 0.0)),
            memory=np.ascontiguousarray(np.where(there, np.minimum(cells.account + memory, cells.real), 0.0)),
            groups=np.ascontiguousarray(cells.groups),
            left=left,
            pages={size: _free_pages(views, cells.numa_node, size) for size in sizes},
            devices={resource: _free_devices(views, cells.numa_node, resource) for resource in resources},
        )

    def keep(self, candidates: Candidates, weighing: Weighing, answers: Floats) -> None:
        """For the next pod with these needs. weighing: the candidates'. answers: of all nodes, as `memo` has them."""
        alike = np.zeros(len(candidates.names), dtype=np.bool_)
        alike[weighing.anew] = True
        alike[list(candidates.near)] = False
        slots, revisions = candidates.slots[alike], candidates.revisions[alike]
        self._memo.keep(weighing.needs, slots, revisions, answers[:, alike])

    def _weighing(self, needs: Needs, slots: Positions, revisions: Positions, near: Positions) -> Weighing:
        kept = len(slots) * self.numa_nodes > FEW
        before, known = self._memo.recall(needs if kept else None, slots, revisions, ANSWERED)
        known[near] = False
        anew = np.flatnonzero(~known)
        cells = Cells(*self._block.take(slots[anew], axis=2))
        return Weighing(needs, kept, before, anew, cells, cells.keeps[0] == 0)

    def _nearness(self, slots: Positions, kins: Kins) -> Floats | None:
        total = kins.no_kin.elsewhere
        if not (self._domain_ids and kins.near and total):
            return None
        there = [(slot, total - kin.elsewhere) for name, kin in kins.near.items() if (slot := self._slots.get(name))]
        on_node, nearness = np.zeros(self._count), np.zeros(len(slots))
        homes = np.array([slot for slot, _ in there], dtype=np.intp)
        on_node[homes] = weights = np.array([weight for _, weight in there])
        here = on_node[slots] / total
        for level, domains in enumerate(self._near):
            weighs = pull(level) - (pull(level + 1) if level + 1 < len(self._near) else 0.0)
            of_domain = np.bincount(domains[homes], weights, len(self._domain_ids) + 1) / total
            of_domain[0] = 0.0
            domain = domains[slots]
            nearness += weighs * np.where(domain > 0, of_domain[domain] - here, 0.0)
        return nearness if nearness.any() else None

    def _locate(self, node: str, slot: int) -> None:
        found, numbers = self._domains.of(node), self._domain_ids
        for level in range(len(self._near)):
            domain = found[level] if found else None
            self._near[level, slot] = 0 if domain is None else numbers.setdefault(domain, len(numbers) + 1)

    def _position(self, slots: Positions, near: Positions, node: str) -> int | None:
        """None where the node is not among these."""
        there = near[slots[near] == self._slots.get(node, UNKNOWN)]
        return int(there[0]) if node in self._slots and len(there) else None

    def _among(self, names: Sequence[str], slots: Positions, nodes: Collection[str]) -> Positions:
        """The positions of these nodes."""
        if len(nodes) > len(names):
            return np.fromiter(compress(range(len(names)), map(nodes.__contains__, names)), np.intp)
        theirs = [slot for node in nodes if (slot := self._slots.get(node)) is not None]
        marked = np.zeros(self._count, dtype=np.bool_)
        marked[theirs] = True
        return np.flatnonzero(marked[slots])

    def _show(self, slot: int, view: NodeView | None) -> None:
        self._changed.setdefault(slot, self._views[slot])
        self._views[slot] = view

    def _write(self, slot: int, view: NodeView | None) -> None:
        table = view.table if view is not None else None
        width = 0 if table is None else table.shape[1]
        self._grow(slot + 1, width)
        self._block[:, :, slot] = EMPTY_NODE[:, None]
        if table is not None:
            self._block[:, :width, slot] = table
        self._free_share[slot] = 0.0 if table is None else np.maximum(table[FREE], 0.0).sum() / table[WHOLE].sum()
        self._limited[slot] = table is not None and table[LIMITED, 0] > 0
        self._requested[:, slot] = (0, 0) if view is None or table is None else view.requested
        self._placing[slot] = view is not None and view.placing
        self._revision += 1
        self._revisions[slot] = self._revision

    def _grow(self, slots: int, width: int) -> None:
        before = self._block
        if slots <= before.shape[2] and width <= before.shape[1]:
            return
        room = before.shape[2] if slots <= before.shape[2] else 2 * slots
        self._block = _blank(room, max(width, before.shape[1]))
        self._block[:, : before.shape[1], : before.shape[2]] = before
        more = room - before.shape[2]
        self._received_at = np.append(self._received_at, np.full(more, -np.inf))
        self._views = np.append(self._views, np.full(more, None))
        self._placing = np.append(self._placing, np.zeros(more, dtype=np.bool_))
        self._revisions = np.append(self._revisions, np.zeros(more, dtype=np.intp))
        self._free_share = np.append(self._free_share, np.zeros(more))
        self._limited = np.append(self._limited, np.zeros(more, dtype=np.bool_))
        self._requested = np.append(self._requested, np.zeros((2, more)), axis=1)
        self._near = np.append(self._near, np.zeros((len(self._near), more), dtype=np.intp), axis=1)


def _blank(slots: int, width: int) -> Floats:
    return np.broadcast_to(EMPTY_NODE[:, None, None], (len(COLUMNS), width, slots)).copy()


def _held_on(views: Sequence[NodeView], numa_nodes: Floats, held: Mapping[NumaPlace, Demand]) -> Floats:
    """Millicores that are requested, and expected to be used, and bytes, x nodes x NUMA nodes."""
    found, index = np.zeros((3, *numa_nodes.shape)), {view.name: at for at, view in enumerate(views)}
    for place, demand in held.items():
        if (node := index.get(place.node)) is not None:
            there = numa_nodes[node] == place.numa_node
            found[:, node] += np.outer((demand.cpu_milli, demand.expected_milli, demand.memory), there)
    return found


def _free_pages(views: Sequence[NodeView], numa_nodes: Floats, size: int) -> Floats:
    return np.array(
        [
            [view.bare.free_pages(int(numa_node), size) if numa_node >= 0 else 0 for numa_node in row]
            for view, row in zip(views, numa_nodes, strict=True)
        ],
        dtype=np.float64,
    ).reshape(numa_nodes.shape)


def _free_devices(views: Sequence[NodeView], numa_nodes: Floats, resource: str) -> FreeDevices:
    by_mask = [view.bare.free_devices(resource) for view in views]
    kinds = max(map(len, by_mask), default=0)
    free = np.zeros((len(views), kinds))
    near = np.zeros((len(views), kinds, numa_nodes.shape[1]))
    for at, found in enumerate(by_mask):
        for kind, (mask, count) in enumerate(found.items()):
            free[at, kind] = count
            near[at, kind] = [
                numa_node >= 0 and (not mask or mask >> int(numa_node) & 1) for numa_node in numa_nodes[at]
            ]
    return FreeDevices.of(free, near)
