"""The numbers of all nodes in one block, so that thousands of them are weighed without being put together first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from extender.state.cells import COLUMNS, NOBODY, Cells, Floats
from extender.state.kins import Kins
from extender.state.node_view import NodeView

UNKNOWN = 0
"""The slot of all nodes that are not known, in which nothing fits."""

FRESH = 0.25
"""The share of the report timeout in which a report counts in full."""

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

NO_KINS = Kins()


def age_factor(age: Floats | float, timeout: float) -> Floats:
    """1 while fresh, then falling evenly to 0 at the timeout."""
    fresh = timeout * FRESH
    return np.clip((timeout - np.asarray(age)) / (timeout - fresh), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that a pod may go to, in the order asked for, and what it finds there.

    views: None, ages: infinite, for one that is not known. registered: with its container runtime. cells: NUMA
    nodes x nodes, as many as the largest machine has: whatever is sought over a node's NUMA nodes goes along whole rows
    then, 30 times as fast. near: the positions of the nodes that are not like most: with a reservation of
    the pod itself, of its group or of its kin, or planned for it. slot: the position of the node on which the group's
    plan keeps a slot for the pod, own: of the one on which the pod itself is; None: on none. slots: where the store has
    them. revisions: one for each view that there was; 0 for nodes that are not known.
    """

    names: Sequence[str]
    views: list[NodeView | None]
    ages: Floats
    registered: Bools
    cells: Cells
    slots: Positions
    revisions: Positions
    kins: Kins = NO_KINS
    near: Sequence[int] = ()
    slot: int | None = None
    own: int | None = None

    @property
    def free_share(self) -> Floats:
        """Of each node's CPUs, all its NUMA nodes together, the share that nobody requests."""
        share: Floats = np.maximum(self.cells.free, 0.0).sum(axis=0) / self.cells.whole.sum(axis=0)
        return share

    def live(self, timeout: float) -> Bools:
        """Where pods that start now would be placed. timeout: seconds of silence."""
        return self.registered & (self.ages < timeout)

    def current(self, timeout: float) -> Bools:
        """Where enough is known to refuse by."""
        current: Bools = self.live(timeout) & (age_factor(self.ages, timeout) == 1.0)
        return current

    def fresh(self, timeout: float) -> list[NodeView | None]:
        """The views that are known well enough to refuse by; None elsewhere."""
        return [view if ok else None for view, ok in zip(self.views, self.current(timeout).tolist(), strict=True)]


class ColumnStore:
    """Under the cluster's lock. A block of columns x NUMA nodes x slots; each node has a slot while it is known."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._vacant: list[int] = []
        self._changed: set[int] = set()
        self._views: list[NodeView | None] = [None]
        self._received_at = np.full(64, -np.inf)
        self._registered = np.zeros(64, dtype=np.bool_)
        self._revisions, self._revision = np.zeros(64, dtype=np.intp), 0
        self._block = _blank(64, 2)

    @property
    def numa_nodes(self) -> int:
        width: int = self._block.shape[1]
        return width

    def put(self, view: NodeView) -> None:
        """The node's view from now on; its numbers are worked out when they are asked for."""
        slot = self._slots.get(view.name)
        if slot is None:
            slot = self._slots[view.name] = self._vacant.pop() if self._vacant else len(self._views)
            if slot == len(self._views):
                self._views.append(None)
        self._views[slot] = view
        self._changed.add(slot)

    def received(self, node: str, at: float) -> None:
        """The node's enforcer sent something; nothing for a node that has no view."""
        slot = self._slots.get(node, UNKNOWN)
        if slot != UNKNOWN:
            self._grow(slot + 1, 0)
            self._received_at[slot] = at

    def drop(self, node: str) -> None:
        slot = self._slots.pop(node, None)
        if slot is not None:
            self._grow(slot + 1, 0)
            self._views[slot], self._received_at[slot] = None, -np.inf
            self._changed.add(slot)
            self._vacant.append(slot)

    def refresh(self) -> None:
        """Works out the numbers of the views that are new."""
        for changed in self._changed:
            self._write(changed, self._views[changed])
        self._changed.clear()

    def candidates(
        self,
        names: Sequence[str],
        now: float,
        *,
        kins: Kins = NO_KINS,
        near: Sequence[int] = (),
        slot: int | None = None,
        own: int | None = None,
    ) -> Candidates:
        """kins to own: as `Candidates` has them."""
        self.refresh()
        slots = np.fromiter(map(self._slots.get, names, repeat(UNKNOWN)), np.intp, len(names))
        views = list(map(self._views.__getitem__, slots.tolist()))
        ages, cells = now - self._received_at[slots], Cells(*self._block.take(slots, axis=2))
        registered, revisions = self._registered[slots], self._revisions[slots]
        return Candidates(names, views, ages, registered, cells, slots, revisions, kins, near, slot, own)

    def _write(self, slot: int, view: NodeView | None) -> None:
        table = view.table if view is not None else None
        width = 0 if table is None else table.shape[1]
        self._grow(slot + 1, width)
        self._block[:, :, slot] = NOBODY[:, None]
        if table is not None:
            self._block[:, :width, slot] = table
        self._registered[slot] = view is not None and view.registered
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
        self._registered = np.append(self._registered, np.zeros(more, dtype=np.bool_))
        self._revisions = np.append(self._revisions, np.zeros(more, dtype=np.intp))


def cells_of(tables: Iterable[Floats | None]) -> Cells:
    """As the candidates of just these nodes have them."""
    listed = list(tables)
    block = _blank(len(listed), max((table.shape[1] for table in listed if table is not None), default=1))
    for slot, table in enumerate(listed):
        if table is not None:
            block[:, : table.shape[1], slot] = table
    return Cells(*block)


def _blank(slots: int, width: int) -> Floats:
    return np.broadcast_to(NOBODY[:, None, None], (len(COLUMNS), width, slots)).copy()
