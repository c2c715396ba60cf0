"""Which nodes a pod of policy restricted or single-numa-node can't use: where its policy would not admit the decision.

Reasons are the same words on every node, since kube-scheduler groups and counts them in the pod's events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from extender.scoring import devices
from extender.scoring.predict import Prediction, Wanted, predict
from extender.scoring.single import NodeScores
from extender.state.columns.arrays import Bools
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from numakin.placement.decide.request import NO_KIN, Kin

NO_ROOM = "no NUMA node has room for the pod (numakin)"
NOT_ALIGNED = "the pod would spread over more NUMA nodes than it needs (numakin)"
NO_OWN = "no NUMA node can spare as many CPUs for the pod alone (numakin)"
NO_DEVICE = "no NUMA node has both room for the pod and the devices that it asks for (numakin)"
TOO_SMALL = "no NUMA node is large enough for the pod (numakin)"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """hopeless: even on the empty machine, so that evicting others would not help."""

    why: str
    hopeless: bool


def refusals(
    candidates: Candidates, want: Wanted, known: NodeScores, timeout: float, faults: Faults
) -> dict[str, NodeRefusal]:
    """The candidates that can't align the pod, by fresh data; a node that is not known well is never refused.

    known: as `weighing.over_arrays` has them. timeout: seconds of silence after which a node is not live.
    """
    refused = {}
    for view in (candidates.views[at] for at in np.flatnonzero(uncertain(candidates, known, timeout)).tolist()):
        if view is not None:
            with faults.contained(view.name):
                if (why := refusal(view, want, candidates.kins.of(view.name))) is not None:
                    refused[view.name] = why
    return refused


def uncertain(candidates: Candidates, known: NodeScores, timeout: float) -> Bools:
    """Where decide() says whether the pod may go. known, timeout: as for `refusals`."""
    asked: Bools = candidates.current(timeout) & ~known.sure
    return asked


def refusal(view: NodeView, want: Wanted, kin: Kin) -> NodeRefusal | None:
    """None where the pod may go."""
    now = predict(view.machine, view.occupancy, want, kin)
    if _admitted(now):
        return None
    if not _admitted(predict(view.machine, view.occupancy.emptied(), want, kin)):
        return NodeRefusal(TOO_SMALL, hopeless=True)
    if now.shares_instead:
        return NodeRefusal(NO_OWN, hopeless=False)
    if now.fits and devices.lacking(view.occupancy.live, want.pod, NO_KIN, now.numa_nodes):
        return NodeRefusal(NO_DEVICE, hopeless=False)
    return NodeRefusal(NOT_ALIGNED if now.fits else NO_ROOM, hopeless=False)


def admits(view: NodeView, want: Wanted, kin: Kin, without: Iterable[str] = ()) -> bool:
    """Whether the pod may go there. without: uids of pods that would be evicted from the node first."""
    occupancy = view.occupancy
    for uid in without:
        occupancy = occupancy.without_pod(uid)
    return _admitted(predict(view.machine, occupancy, want, kin))


def _admitted(prediction: Prediction) -> bool:
    return prediction.fits and prediction.admitted
