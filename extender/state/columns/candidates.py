"""The nodes that a pod may go to, and what it finds there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from extender.state.columns.arrays import Bools, Floats, Objects, Positions
from extender.state.columns.cells import Cells
from extender.state.columns.needs import Needs
from extender.state.kins import Kins
from extender.state.node_domains import NO_DOMAINS, NodeDomains
from extender.state.node_view import NodeView

FRESH = 0.25
"""The share of the report timeout in which a report counts in full."""

NO_KINS = Kins()


def age_factor(age: Floats | float, timeout: float) -> Floats:
    """1 while fresh, then falling evenly to 0 at the timeout."""
    fresh = timeout * FRESH
    return np.clip((timeout - np.asarray(age)) / (timeout - fresh), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Views(Sequence[NodeView | None]):
    """An array of views, each a NodeView or None."""

    array: Objects

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[NodeView | None]:
        return iter(self.array.tolist())

    @overload
    def __getitem__(self, at: int) -> NodeView | None: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[NodeView | None]: ...
    def __getitem__(self, at: int | slice) -> NodeView | Sequence[NodeView | None] | None:
        return Views(self.array[at]) if isinstance(at, slice) else self.array[at]


@dataclass(frozen=True, slots=True)
class Weighing:
    """What arrays are to answer of nodes.

    kept: whether they are worth keeping. before: the answers that are there already, rows x nodes. anew: the positions
    of the nodes without one, ascending, those with kin among them. cells: of these, NUMA nodes x nodes, as many as the
    largest machine has: whatever is sought over a node's NUMA nodes goes along whole rows then, 30 times as fast.
    plain: of these, where no group keeps room.
    """

    needs: Needs
    kept: bool
    before: Floats
    anew: Positions
    cells: Cells
    plain: Bools


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that a pod may go to, in the order asked for, and what it finds there.

    views: None, ages: infinite, for one that is not known. placing: as
    `NodeView.placing` has it. free_share: of each
    node's CPUs, all its NUMA nodes together, the share that is not requested. limited: where the node itself limits
    each namespace's exclusive CPUs. slots: where the store has them. revisions: one for each view that there was; 0
    for nodes that are not known. near: the positions of the nodes that are not like most, ascending: with a
    reservation of the pod itself, of its group or of its kin, or planned for it. slot: the position of the node on
    which the group's plan keeps a slot for the pod, own: of the one on which the pod itself is; None: on none.
    nearness: of the weight of all kin, what those weigh that are on nodes near each, as `node_domains` has it; None:
    nothing. domains: of all nodes, at the time. weighing: None where arrays can't answer.
    """

    names: Sequence[str]
    views: Sequence[NodeView | None]
    ages: Floats
    placing: Bools
    free_share: Floats
    limited: Bools
    slots: Positions
    revisions: Positions
    kins: Kins = NO_KINS
    near: Sequence[int] = ()
    slot: int | None = None
    own: int | None = None
    nearness: Floats | None = None
    domains: NodeDomains = NO_DOMAINS
    weighing: Weighing | None = None

    def live(self, timeout: float) -> Bools:
        """Where pods that start now would be placed. timeout: seconds of silence."""
        return self.placing & (self.ages < timeout)

    def current(self, timeout: float) -> Bools:
        """Where enough is known to refuse by."""
        current: Bools = self.live(timeout) & (age_factor(self.ages, timeout) == 1.0)
        return current

    def fresh(self, timeout: float) -> list[NodeView | None]:
        """The views that are known well enough to refuse by; None elsewhere."""
        return [view if ok else None for view, ok in zip(self.views, self.current(timeout).tolist(), strict=True)]
