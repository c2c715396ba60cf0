"""The kin's share of each NUMA node, for the nodes that have kin.

A group may be on hundreds of nodes, and each of its newcomers finds nearly all of them as the one before did. So where
its members count alike, what they are worth is kept by slot, and worked out anew only for nodes that have changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from extender.scoring.predict import Wanted
from extender.state.columns.arrays import Bools, Floats, Positions
from extender.state.columns.candidates import Candidates, Weighing
from extender.state.columns.memo import SlotMemo
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from numakin.placement.decide.kin_share import pulls, pulls_of, strangers, weight_by_home
from numakin.placement.decide.request import NO_KIN, Kin

GROUPS = 16
"""Groups whose shares are kept: newcomers of one group mostly come together."""


@dataclass(frozen=True, slots=True)
class KinOnNodes:
    """Of the nodes that are weighed. share: of each NUMA node, as their cells have them. plain: where the arrays hold
    all that decide() would read; not where a node's share can't be computed. planned: the place that a plan has for the
    pod.
    """

    share: Floats
    plain: Bools
    planned: Bools


class KinShares:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._memo = SlotMemo(GROUPS)

    def of(self, candidates: Candidates, weighing: Weighing, want: Wanted, faults: Faults) -> KinOnNodes:
        """Of the nodes that are to be weighed. Nearly all nodes have no kin."""
        kins, names = candidates.kins, candidates.names
        planned = {node for node, kin in kins.near.items() if kin.planned}
        near = [at for at in candidates.near if names[at] not in planned] if planned else candidates.near
        columns = np.searchsorted(weighing.anew, near)
        shape = weighing.cells.numa_node.shape
        on_nodes = KinOnNodes(np.zeros(shape), weighing.plain.copy(), np.zeros(shape, dtype=np.bool_))
        share, plain = on_nodes.share, on_nodes.plain
        plain[columns] = False
        if any(kin.weights for kin in kins.near.values()):
            self._each(candidates, zip(near, columns.tolist(), strict=True), want, on_nodes, faults)
        elif len(near):
            there, no_kin = kins.near.get, kins.no_kin
            elsewhere = np.array([there(names[at], no_kin).elsewhere for at in near])
            with self._lock:
                rows = self._group(candidates, np.array(near, dtype=np.intp), want, faults, len(share))
            here, plain[columns] = rows[-2], rows[-1] > 0
            share[:, columns] = rows[:-2] * (here / np.where(here > 0, here + elsewhere, 1.0))
        for at in (at for at in candidates.near if names[at] in planned) if planned else ():
            column = int(np.searchsorted(weighing.anew, at))
            plain[column] = False
            with faults.contained(names[at]):
                _with_plan(candidates, at, want, column, on_nodes)
        if candidates.own is not None:
            plain[np.searchsorted(weighing.anew, candidates.own)] = False
        return on_nodes

    def _each(
        self,
        candidates: Candidates,
        near: Iterable[tuple[int, int]],
        want: Wanted,
        on_nodes: KinOnNodes,
        faults: Faults,
    ) -> None:
        """Each node's kin are its own. What was worked out is remembered on the view: newcomers find it alike.

        near: the nodes' positions, with their columns.
        """
        for at, column in near:
            view, kin = candidates.views[at], candidates.kins.of(candidates.names[at])
            if view is not None and view.table is not None:
                with faults.contained(view.name):
                    near, here = _remembered(view, want, kin)
                    on_nodes.share[: len(near), column] = near * (here / (here + kin.elsewhere)) if here else near
                    on_nodes.plain[column] = not _keeps(view, want.group)

    def _group(self, candidates: Candidates, near: Positions, want: Wanted, faults: Faults, width: int) -> Floats:
        """Of the nodes near by, a column each, as they are now: what is on the node itself has of each NUMA node, what
        that weighs, and whether the node is plain.
        """
        slots, revisions = candidates.slots[near], candidates.revisions[near]
        rows, known = self._memo.recall(want.group, slots, revisions, width + 2)
        made = []
        for column in np.flatnonzero(~known).tolist():
            rows[:, column] = 0.0
            view = candidates.views[near[column]]
            if view is None:
                continue
            with faults.contained(view.name):
                if view.table is not None:
                    shares, rows[-2, column] = _shares(view, want, NO_KIN)
                    rows[: len(shares), column] = shares
                    rows[-1, column] = not _keeps(view, want.group)
                made.append(column)
        if made:
            self._memo.keep(want.group, slots[made], revisions[made], rows[:, made])
        return rows


def _with_plan(candidates: Candidates, at: int, want: Wanted, column: int, on_nodes: KinOnNodes) -> None:
    """A node with a planned place, which counts as part of the kin."""
    view, kin = candidates.views[at], candidates.kins.of(candidates.names[at])
    if view is None or view.table is None:
        return
    pull, ids = pulls_of(view.machine, view.occupancy, want.whole[0], kin), view.table[0]
    on_nodes.share[: len(ids), column] = [pull[int(numa_node)] for numa_node in ids]
    on_nodes.planned[: len(ids), column] = [int(numa_node) in kin.planned for numa_node in ids]
    # A planned place may also do whose memory is short, where a lower tier lends the rest: decide() knows.
    on_nodes.plain[column] = not _keeps(view, want.group) and not any(view.machine.lower_tier.values())


def _remembered(view: NodeView, want: Wanted, kin: Kin) -> tuple[Floats, float]:
    key = ("near", want.group, tuple(kin.weights.items()))
    shares: tuple[Floats, float] | None = view.memo.get(key)
    if shares is None:
        shares = _shares(view, want, kin)
        view.remember(key, shares)
    return shares


def _shares(view: NodeView, want: Wanted, kin: Kin) -> tuple[Floats, float]:
    """What is on the node itself, of each NUMA node of its table, and what that weighs."""
    if view.table is None or not (kin.weights or want.group in view.occupancy.directory.by_group):
        return np.zeros(0), 0.0
    peers = weight_by_home(view.occupancy, want.whole[0], kin)
    pull = pulls(view.machine, peers, NO_KIN, strangers(view.occupancy, want.whole[0], kin))
    return np.array([pull[int(numa_node)] for numa_node in view.table[0]]), sum(peers.values())


def _keeps(view: NodeView, group: str) -> bool:
    """Whether other groups' declared sizes keep room on the node."""
    occupancy = view.occupancy
    return bool(occupancy.directory.sized and occupancy.kept(view.machine, but=group))
