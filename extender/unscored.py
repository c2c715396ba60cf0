"""Why a pod was bound without kube-scheduler having asked for scores, as far as that is seen.

kube-scheduler does not ask where there is nothing to choose from (seen on 1.34 and 1.36): one node is feasible, a node
is nominated for the pod, or a placement of its scheduling group has one node. The pod's enforcer places it by its kin
all the same.
"""

from __future__ import annotations

from enum import StrEnum

from extender.state.pods import PodRow
from numakin.placement.model.workload import NODE

ASKS_HERE_S = 600.0
"""So long after a question a replica of the extender is taken for the one that kube-scheduler asks, in seconds: pods
whose scores another replica gave are not counted.
"""


class Unscored(StrEnum):
    """Values of the metric's label."""

    ONE_NODE = "one node"
    NOMINATED = "nominated node"
    GROUP = "scheduling group"
    STATIC = "static pod"
    NOT_ASKED = "not asked"


SENTENCES = {
    Unscored.ONE_NODE: "kube-scheduler did not ask for scores: it offered one node alone",
    Unscored.NOMINATED: "kube-scheduler did not ask for scores: the node was nominated for it, as after a preemption",
    Unscored.GROUP: "kube-scheduler did not ask for scores: it chose a placement for the pod's scheduling group",
    Unscored.STATIC: "kube-scheduler did not ask for scores: the pod is a static one, which its node's kubelet started",
    Unscored.NOT_ASKED: (
        "kube-scheduler did not ask this extender for scores: one node was feasible, the question or its answer was "
        "lost, or the pod was bound by another scheduler or for another replica's scores"
    ),
}


def reason(row: PodRow, nominated: str, *, offered_one: bool) -> Unscored:
    """Of a pod that was bound. nominated: the node that was nominated for it before. offered_one: kube-scheduler asked
    whether one node may take it.
    """
    if row.owner is not None and row.owner.kind == NODE:
        return Unscored.STATIC
    if nominated and nominated == row.node:
        return Unscored.NOMINATED
    if row.scheduling_group:
        return Unscored.GROUP
    return Unscored.ONE_NODE if offered_one else Unscored.NOT_ASKED
