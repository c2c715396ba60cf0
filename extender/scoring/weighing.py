"""Scores of many nodes at once: over arrays where a single NUMA node will do (`single`), decide() itself elsewhere."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from extender.scoring.predict import Wanted, predict
from extender.scoring.single import NodeScores, best, covered
from extender.state.cells import Floats
from extender.state.column_store import Bools, Candidates
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from placement.decide.decide import Kin
from placement.decide.kin_share import peers_of, pulls, strangers
from placement.decide.scoring import KIN_SHARE

REMEMBERED = 64
"""Answers remembered on one view."""

NO_KIN = Kin()

MOST_DECIDED = 500
"""Nodes of one answer for which decide() is asked anew: some 0.15 s. It is needed for those that a pod would have to
spread over NUMA nodes of; where they are more, the rest get no points this time, and are decided for the next pod.
"""


def weigh(candidates: Candidates, want: Wanted, live: Bools, faults: Faults) -> NodeScores:
    """Each node's, in the candidates' order; 0 where it is not live, and where weighing it raises."""
    views, kins = candidates.views, candidates.kins
    over_arrays = _over_arrays(candidates, want, faults)
    settled = over_arrays.sure & live
    score, near = np.where(settled, over_arrays.score, 0.0), np.where(settled, over_arrays.kin, 0.0)
    left = MOST_DECIDED
    for at in sorted(np.flatnonzero(live & ~settled).tolist(), key=lambda at: not kins[at].weights):
        view = views[at]
        if view is None:
            continue
        with faults.contained(view.name):
            decided = _remembered(view, want, kins[at])
            if decided is None and left > 0:
                left -= 1
                decided = _decided(view, want, kins[at])
            if decided is not None:
                score[at], near[at] = decided
    return NodeScores(score, near, live)


def holds(candidates: Candidates, want: Wanted, faults: Faults) -> Bools:
    """Where a single NUMA node holds the pod for certain; elsewhere it may still be so."""
    return _over_arrays(candidates, want, faults).sure


def _over_arrays(candidates: Candidates, want: Wanted, faults: Faults) -> NodeScores:
    count = len(candidates.kins)
    if not covered(want):
        return NodeScores.unknown(count)
    rest = np.fromiter((kin.room_milli for kin in candidates.kins), np.float64, count)
    plain = _plain(candidates, want, rest, faults)
    scores = best(candidates.cells, want, _kin(candidates, want, plain, faults), rest)
    return replace(scores, sure=scores.sure & plain)


def _plain(candidates: Candidates, want: Wanted, rest: Floats, faults: Faults) -> Bools:
    """Where the arrays hold all that decide() would read."""
    plain: Bools = candidates.cells.keeps[:, 0] == 0
    for at in candidates.near:
        view, plain[at] = candidates.views[at], False
        if view is not None:
            with faults.contained(view.name):
                kept = view.occupancy.directory.sized and view.occupancy.kept(view.machine, but=want.group)
                plain[at] = not kept and not candidates.kins[at].planned and want.pod.uid not in view.index.pods
    return plain & (rest != 0) if want.opt_in.size else plain


def _kin(candidates: Candidates, want: Wanted, plain: Bools, faults: Faults) -> Floats:
    """The kin share of each NUMA node of the plain nodes, as the cells have them. Nearly all nodes have no kin.

    Where it can't be computed the node is plain no longer.
    """
    share = np.zeros(candidates.cells.numa_node.shape)
    for at in candidates.near:
        view, kin = candidates.views[at], candidates.kins[at]
        if view is not None and plain[at]:
            plain[at] = False
            with faults.contained(view.name):
                if kin.weights or want.group in view.index.group_reservations:
                    rows = _shares(view, want, kin)
                    share[at, : len(rows)] = rows
                plain[at] = True
    return share


def _shares(view: NodeView, want: Wanted, kin: Kin) -> Floats:
    """Of each NUMA node of the view's table. What is on the node itself is remembered: newcomers find it alike."""
    if view.table is None:
        return np.zeros(0)
    key = ("near", want.group, tuple(kin.weights.items()))
    shares: tuple[Floats, float] | None = view.memo.get(key)
    if shares is None:
        peers = peers_of(view.occupancy, want.requests[0], kin)
        pull = pulls(view.machine, peers, NO_KIN, strangers(view.occupancy, want.requests[0], kin))
        shares = np.array([pull[int(numa_node)] for numa_node in view.table[0]]), sum(weight for _, weight in peers)
        remember(view, key, shares)
    near, here = shares
    return near * (here / (here + kin.elsewhere)) if here else near


def remember(view: NodeView, key: Hashable, answer: object) -> None:
    if len(view.memo) >= REMEMBERED:
        view.memo.clear()
    view.memo[key] = answer


def _remembered(view: NodeView, want: Wanted, kin: Kin) -> tuple[float, float] | None:
    """What decide() answered for another replica of the same workload; None when it has to be asked."""
    known: tuple[float, float] | None = view.memo.get(likeness(view, want, kin))
    return known


def _decided(view: NodeView, want: Wanted, kin: Kin) -> tuple[float, float]:
    """Score and kin by decide() itself."""
    decided = _asked(view, want, kin)
    if want.pod.uid not in view.index.pods:
        remember(view, likeness(view, want, kin), decided)
    return decided


def likeness(view: NodeView, want: Wanted, kin: Kin) -> Hashable:
    """Of pods that are decided alike there; a pod that the node has reported is like no other."""
    if want.pod.uid in view.index.pods:
        return want.pod.uid
    alone = not kin.weights and want.group not in view.index.group_reservations
    return (
        tuple((request.name, request.opt_in, request.demand, request.pod_demand) for request in want.requests),
        tuple(kin.weights.items()),
        0.0 if alone else kin.elsewhere,
        kin.planned,
        kin.room_milli,
    )


def _asked(view: NodeView, want: Wanted, kin: Kin) -> tuple[float, float]:
    prediction = predict(view.machine, view.occupancy, want, kin)
    if not prediction.score:
        return 0.0, 0.0
    request = want.requests[0]
    strange = strangers(view.occupancy, request, kin)
    pull = pulls(view.machine, peers_of(view.occupancy, request, kin), kin, strange)
    sizes = {numa_node: len(view.machine.node(numa_node).cpus) for numa_node in prediction.numa_nodes}
    near = sum(pull[numa_node] * size for numa_node, size in sizes.items()) / sum(sizes.values())
    return prediction.score, min(near, prediction.score / KIN_SHARE)
