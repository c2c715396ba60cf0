"""Scores of many nodes at once: over arrays where a single NUMA node will do (`single`), decide() itself elsewhere."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from extender.scoring import devices, following
from extender.scoring.predict import Wanted, predict
from extender.scoring.shares import KinShares
from extender.scoring.single import NodeScores, best
from extender.state.columns.arrays import Bools
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from numakin.placement.decide.asked.quota import in_use, limit_of, taken_by
from numakin.placement.decide.decide import Kin
from numakin.placement.decide.kin_share import pulls_of
from numakin.placement.decide.scoring import KIN_SHARE

MOST_DECIDED = 500
"""Nodes of one answer for which decide() is asked anew: some 0.15 s. It is needed for those that a pod would have to
spread over NUMA nodes of; where they are more, the rest get no points this time, and are decided for the next pod.
"""


def weigh(candidates: Candidates, want: Wanted, known: NodeScores, live: Bools, faults: Faults) -> NodeScores:
    """Each node's, in the candidates' order; 0 where it is not live, and where weighing it raises. known: as
    `over_arrays` has them.
    """
    views, kins, names = candidates.views, candidates.kins, candidates.names
    settled = known.sure & live
    score, near = np.where(settled, known.score, 0.0), np.where(settled, known.kin, 0.0)
    follow = np.zeros(len(names)) if known.following is None else np.where(settled, known.following, 0.0)
    calm = np.ones(len(names), dtype=np.bool_) if known.calm is None else known.calm.copy()
    asked = bool(want.pod.devices or kins.no_kin.devices)
    lacking = np.where(settled, float(sum(count for _, count in kins.no_kin.devices)), 0.0) if asked else None
    left = MOST_DECIDED
    for at in sorted(np.flatnonzero(live & ~settled).tolist(), key=lambda at: not kins.of(names[at]).weights):
        view = views[at]
        if view is None:
            continue
        with faults.contained(view.name):
            kin = kins.of(view.name)
            decided = _remembered(view, want, kin)
            if decided is None and left > 0:
                left -= 1
                decided = _decided(view, want, kin)
            if decided is not None:
                score[at], near[at], follow[at], lack, calm[at] = decided
                if lacking is not None:
                    lacking[at] = lack
    follows = follow if following.begins(want, kins) else None
    return NodeScores(score, near, live, follows, lacking=lacking, calm=calm)


def over_arrays(candidates: Candidates, want: Wanted, shares: KinShares, faults: Faults) -> NodeScores:
    """Of the nodes of which a single NUMA node holds the pod for certain, whatever its namespace may have; elsewhere it
    may still be so.
    """
    count = len(candidates.names)
    if (weighing := candidates.weighing) is None:
        return NodeScores.unknown(count)
    at, on_nodes = weighing.anew, shares.of(candidates, weighing, want, faults)
    part = best(weighing.cells, weighing.needs, on_nodes.share, on_nodes.planned)
    part = replace(part, sure=part.sure & on_nodes.plain)
    if len(at) == count:
        return part
    rows, kin = weighing.before, np.zeros(count)
    rows[:, at], kin[at] = part.rows, part.kin
    return NodeScores.of_rows(rows, kin, begins=weighing.needs.leaves is not None)


def beside_devices(known: NodeScores, candidates: Candidates, want: Wanted) -> NodeScores:
    """known: as `over_arrays` has it; of nodes that report devices of a resource that the pod asks for, or the rest of
    a group that begins, decide() is to be asked.
    """
    asked = devices.together(want.pod.devices, candidates.kins.no_kin.devices)
    if not asked:
        return known
    sure = known.sure.copy()
    for at in np.flatnonzero(sure).tolist():
        view = candidates.views[at]
        sure[at] = view is not None and not devices.reported(view.occupancy.live, asked)
    return replace(known, sure=sure)


def within_quota(known: NodeScores, candidates: Candidates, want: Wanted) -> NodeScores:
    """known: as `over_arrays` has it; of nodes on which the pod's namespace may not have as many exclusive CPUs as the
    pod asks for, decide() is to be asked.
    """
    if not want.exclusive:
        return known
    everywhere, sure = want.requests[0].max_exclusive_cpus is not None, known.sure.copy()
    for at in np.flatnonzero(sure if everywhere else sure & candidates.limited).tolist():
        view = candidates.views[at]
        sure[at] = view is not None and _within_quota(view, want)
    return replace(known, sure=sure)


def _within_quota(view: NodeView, want: Wanted) -> bool:
    """Whether all the exclusive CPUs that the pod asks for are within its namespace's quota there."""
    first = want.requests[0]
    limit = limit_of(view.occupancy, first)
    if limit is None:
        return True
    exclusive = (request for request in want.requests if request.wants_exclusive)
    return (
        in_use(view.occupancy, first) + sum(taken_by(view.machine, view.occupancy, request) for request in exclusive)
        <= limit
    )


_Decided = tuple[float, float, float, float, bool]
"""Score, kin, what can follow, what devices it lacks, and whether kin count."""


def _remembered(view: NodeView, want: Wanted, kin: Kin) -> _Decided | None:
    """What decide() answered for another replica of the same workload; None when it has to be asked."""
    known: _Decided | None = view.memo.get(likeness(view, want, kin))
    return known


def _decided(view: NodeView, want: Wanted, kin: Kin) -> _Decided:
    """By decide() itself."""
    decided = _asked(view, want, kin)
    if want.pod.uid not in view.index.pods:
        view.remember(likeness(view, want, kin), decided)
    return decided


def likeness(view: NodeView, want: Wanted, kin: Kin) -> Hashable:
    """Of pods that are decided alike there; a pod that the node has reported is like no other."""
    if want.pod.uid in view.index.pods:
        return want.pod.uid
    alone = not kin.weights and want.group not in view.occupancy.directory.by_group
    return (
        tuple(
            (request.name, request.opt_in, request.demand, request.pod_demand, request.budget)
            for request in want.requests
        ),
        (want.pod.namespace, want.requests[0].max_exclusive_cpus) if want.exclusive else (),
        tuple(kin.weights.items()),
        0.0 if alone else kin.elsewhere,
        kin.planned,
        kin.room_milli,
        (want.pod.devices, kin.devices) if view.occupancy.live.devices else (),
    )


def _asked(view: NodeView, want: Wanted, kin: Kin) -> _Decided:
    prediction = predict(view.machine, view.occupancy, want, kin)
    if not prediction.score:
        return 0.0, 0.0, 0.0, 0.0, False
    pull = pulls_of(view.machine, view.occupancy, want.whole[0], kin)
    sizes = {numa_node: len(view.machine.node(numa_node).cpus) for numa_node in prediction.numa_nodes}
    near = sum(pull[numa_node] * size for numa_node, size in sizes.items()) / sum(sizes.values())
    calm = not (prediction.decisions[0].crowded or prediction.decisions[0].hot)
    if not calm:
        near = 0.0
    follow = following.predicted(view.machine, view.occupancy, want, prediction)
    lack = devices.lacking(view.occupancy.live, want.pod, kin, prediction.numa_nodes)
    return prediction.score, min(near, prediction.score / KIN_SHARE), follow, float(lack), calm
