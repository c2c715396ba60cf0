"""Which nodes a pod of policy restricted or single-numa-node can't use: where its policy would not admit the decision.

Reasons are the same words on every node, since kube-scheduler groups and counts them in the pod's events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from extender.scoring.predict import Prediction, Wanted, predict
from extender.state.node_view import NodeView
from placement.decide.decide import Kin

NO_ROOM = "no NUMA node has room for the pod (numakin)"
NOT_ALIGNED = "the pod would spread over more NUMA nodes than it needs (numakin)"
TOO_SMALL = "no NUMA node is large enough for the pod (numakin)"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """hopeless: even on the empty machine, so that evicting others would not help."""

    why: str
    hopeless: bool


def refusal(view: NodeView, want: Wanted, kin: Kin, without: Iterable[str] = ()) -> NodeRefusal | None:
    """None where the pod may go. without: uids of pods that would be evicted from the node first."""
    occupancy = view.occupancy
    for uid in without:
        occupancy = occupancy.without_pod(uid)
    now = predict(view.machine, occupancy, want, kin)
    if _welcome(now):
        return None
    empty = occupancy.emptied()
    if not _welcome(predict(view.machine, empty, want, kin)):
        return NodeRefusal(TOO_SMALL, hopeless=True)
    return NodeRefusal(NOT_ALIGNED if now.fits else NO_ROOM, hopeless=False)


def admits(view: NodeView, want: Wanted, kin: Kin) -> bool:
    """Whether the pod may go there as it is."""
    return _welcome(predict(view.machine, view.occupancy, want, kin))


def _welcome(found: Prediction) -> bool:
    return found.fits and found.admitted
