"""The numbers of all nodes in one block, so that thousands of them are weighed without being put together first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from extender.state.cells import COLUMNS, NOBODY, Cells, Floats
from extender.state.node_view import NodeView
from placement.decide.decide import Kin

UNKNOWN = 0
"""The slot of all nodes that are not known, in which nothing fits."""

FRESH = 0.25
"""The share of the report timeout in which a report counts in full."""

Bools = npt.NDArray[np.bool_]


def age_factor(age: Floats | float, timeout: float) -> Floats:
    """1 while fresh, then falling evenly to 0 at the timeout."""
    fresh = timeout * FRESH
    return np.clip((timeout - np.asarray(age)) / (timeout - fresh), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that a pod may go to, in the order asked for, and what it finds there.

    views: None, ages: infinite, for one that is not known. registered: with its container runtime. cells: nodes x NUMA
    nodes, as wide as the widest machine. kins: as each node's enforcer should weigh them. near: by their place in the
    list the nodes that are not like most: with a reservation of the pod itself, of its group or of its kin, or planned
    for it. slot: the place of the node on which the group's plan keeps a slot for the pod; None: on none.
    """

    names: Sequence[str]
    views: list[NodeView | None]
    ages: Floats
    registered: Bools
    cells: Cells
    kins: Sequence[Kin] = ()
    near: Sequence[int] = ()
    slot: int | None = None

    @property
    def free_share(self) -> Floats:
        """Of each node's CPUs, all its NUMA nodes together, the share that nobody requests."""
        share: Floats = np.maximum(self.cells.free, 0.0).sum(axis=1) / self.cells.whole.sum(axis=1)
        return share

    def live(self, timeout: float) -> Bools:
        """Where pods that start now would be placed. timeout: seconds of silence."""
        return self.registered & (self.ages < timeout)

    def fresh(self, timeout: float) -> list[NodeView | None]:
        """The views that are known well enough to refuse by; None elsewhere."""
        fresh = self.live(timeout) & (age_factor(self.ages, timeout) == 1.0)
        return [view if ok else None for view, ok in zip(self.views, fresh.tolist(), strict=True)]


class ColumnStore:
    """Under the cluster's lock. A block of slots x columns x NUMA nodes; each node has a slot while it is known."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._vacant: list[int] = []
        self._changed: set[int] = set()
        self._views: list[NodeView | None] = [None]
        self._received_at = np.full(64, -np.inf)
        self._registered = np.zeros(64, dtype=np.bool_)
        self._block = _blank(64, 2)

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

    def candidates(
        self,
        names: Sequence[str],
        now: float,
        kins: Sequence[Kin] = (),
        near: Sequence[int] = (),
        slot: int | None = None,
    ) -> Candidates:
        """kins, near, slot: as `Candidates` has them."""
        for changed in self._changed:
            self._write(changed, self._views[changed])
        self._changed.clear()
        slots = np.fromiter(map(self._slots.get, names, repeat(UNKNOWN)), np.intp, len(names))
        views = [self._views[at] for at in slots.tolist()]
        ages, cells = now - self._received_at[slots], _columns(self._block.take(slots, axis=0))
        return Candidates(names, views, ages, self._registered[slots], cells, kins, near, slot)

    def _write(self, slot: int, view: NodeView | None) -> None:
        table = view.table if view is not None else None
        width = 0 if table is None else table.shape[1]
        self._grow(slot + 1, width)
        self._block[slot] = NOBODY[:, None]
        if table is not None:
            self._block[slot, :, :width] = table
        self._registered[slot] = view is not None and view.registered

    def _grow(self, slots: int, width: int) -> None:
        before = self._block
        if slots <= before.shape[0] and width <= before.shape[2]:
            return
        room = before.shape[0] if slots <= before.shape[0] else 2 * slots
        self._block = _blank(room, max(width, before.shape[2]))
        self._block[: before.shape[0], :, : before.shape[2]] = before
        more = room - before.shape[0]
        self._received_at = np.append(self._received_at, np.full(more, -np.inf))
        self._registered = np.append(self._registered, np.zeros(more, dtype=np.bool_))


def cells_of(tables: Iterable[Floats | None]) -> Cells:
    """As the candidates of just these nodes have them."""
    listed = list(tables)
    block = _blank(len(listed), max((table.shape[1] for table in listed if table is not None), default=1))
    for slot, table in enumerate(listed):
        if table is not None:
            block[slot, :, : table.shape[1]] = table
    return _columns(block)


def _blank(slots: int, width: int) -> Floats:
    return np.broadcast_to(NOBODY[None, :, None], (slots, len(COLUMNS), width)).copy()


def _columns(block: npt.NDArray[np.float64]) -> Cells:
    return Cells(*(block[:, at] for at in range(len(COLUMNS))))
