"""Which nodes a pod of policy restricted or single-numa-node can't use, as the kubelet's topology manager means them.

    single-numa-node   the demand fits on one NUMA node
    restricted         the demand fits on no more NUMA nodes than an empty machine of that kind would need

Reasons are the same words on every node, since kube-scheduler groups and counts them in the pod's events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from extender.cluster.predict import STRICT, Prediction, Wanted, predict
from extender.cluster.view import NodeView
from placement.decide import Decision, Kin
from placement.occupancy import Occupancy
from placement.optin import Policy

NO_ROOM = "no NUMA node has room for the pod (numakin)"
NO_ALIGNED_ROOM = "the pod would spread over more NUMA nodes than it needs (numakin)"
TOO_SMALL = "no NUMA node is large enough for the pod (numakin)"


@dataclass(frozen=True, slots=True)
class Refusal:
    """hopeless: even on the empty machine, so that evicting others would not help."""

    why: str
    hopeless: bool


def refusal(view: NodeView, want: Wanted, kin: Kin, without: Iterable[str] = ()) -> Refusal | None:
    """None where the pod may go. without: uids of pods that would be evicted from the node first."""
    occupancy = view.occupancy
    for uid in without:
        occupancy = occupancy.without_pod(uid)
    empty = predict(view.machine, Occupancy(reserved=view.reported.reserved), want, kin)
    now = predict(view.machine, occupancy, want, kin)
    if _aligned(now, empty, want):
        return None
    if not _aligned(empty, empty, want):
        return Refusal(TOO_SMALL, hopeless=True)
    return Refusal(NO_ALIGNED_ROOM if now.fits else NO_ROOM, hopeless=False)


def _aligned(found: Prediction, empty: Prediction, want: Wanted) -> bool:
    """Container by container, each by its own policy."""
    return all(
        one.fits and len(one.numa_nodes) <= _most(request.opt_in.policy, least)
        for request, one, least in zip(want.requests, found.decisions, empty.decisions, strict=True)
        if request.opt_in.policy in STRICT
    )


def _most(policy: Policy, least: Decision) -> int:
    return 1 if policy is Policy.SINGLE_NUMA_NODE else len(least.numa_nodes)
