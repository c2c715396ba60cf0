"""The numbers of all nodes in one block, so that thousands of them are weighed without being put together first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from extender.state.cells import COLUMNS, NOBODY, Cells, Floats
from extender.state.node_view import NodeView

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
class Cut:
    """Many nodes at once, in the order asked for. views: None, ages: infinite, for one that is not known.

    registered: with its container runtime. cells: nodes x NUMA nodes, as wide as the widest machine.
    """

    views: list[NodeView | None]
    ages: Floats
    registered: Bools
    cells: Cells

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
        self._heard = np.full(64, -np.inf)
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

    def heard(self, node: str, at: float) -> None:
        """The node's enforcer was heard; nothing for a node that has no view."""
        slot = self._slots.get(node, UNKNOWN)
        if slot != UNKNOWN:
            self._grow(slot + 1, 0)
            self._heard[slot] = at

    def drop(self, node: str) -> None:
        slot = self._slots.pop(node, None)
        if slot is not None:
            self._grow(slot + 1, 0)
            self._views[slot], self._heard[slot] = None, -np.inf
            self._changed.add(slot)
            self._vacant.append(slot)

    def cut(self, nodes: Sequence[str], now: float) -> Cut:
        for slot in self._changed:
            self._write(slot, self._views[slot])
        self._changed.clear()
        slots = np.fromiter(map(self._slots.get, nodes, repeat(UNKNOWN)), np.intp, len(nodes))
        views = [self._views[slot] for slot in slots.tolist()]
        return Cut(views, now - self._heard[slots], self._registered[slots], _columns(self._block.take(slots, axis=0)))

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
        self._heard = np.append(self._heard, np.full(more, -np.inf))
        self._registered = np.append(self._registered, np.zeros(more, dtype=np.bool_))


def cells_of(tables: Iterable[Floats | None]) -> Cells:
    """As the cut of just these nodes has them."""
    found = list(tables)
    block = _blank(len(found), max((one.shape[1] for one in found if one is not None), default=1))
    for slot, table in enumerate(found):
        if table is not None:
            block[slot, :, : table.shape[1]] = table
    return _columns(block)


def _blank(slots: int, width: int) -> Floats:
    return np.broadcast_to(NOBODY[None, :, None], (slots, len(COLUMNS), width)).copy()


def _columns(block: npt.NDArray[np.float64]) -> Cells:
    return Cells(*(block[:, at] for at in range(len(COLUMNS))))
