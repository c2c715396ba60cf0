"""A new revision of every Deployment of one application: a new pod comes, then an old one goes, one after the other.

A pod that comes while the old one still runs can't have its reservation. So its place is measured twice: against the
place of the pod before it, and against the best that any NUMA node with room could have given it at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.cluster.driver import Cluster
from benchmarks.cluster.load import Instance, Replica
from benchmarks.cluster.nodes.node import Landing

AS_NEAR = 0.01
"""A difference of nearness that counts as none."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """How near its kin a new pod came, beside the pod before it and the best places that had room: on the nodes that
    kube-scheduler offered, and on all. first: of its Deployment; full: the old pod's place had no room for another.
    """

    landing: Landing
    first: bool
    came: float
    was: float
    best_offered: float
    best: float
    full: bool

    @property
    def as_before(self) -> bool:
        return self.came > self.was - AS_NEAR

    @property
    def as_offered(self) -> bool:
        return self.came > self.best_offered - AS_NEAR

    @property
    def as_possible(self) -> bool:
        return self.came > self.best - AS_NEAR


def rolled(cluster: Cluster, app: Instance) -> list[Replaced]:
    """Every pod of the application's is replaced by one of the next revision."""
    revision = 1 + max(replica.revision for replica in _running(cluster, app))
    replaced = []
    for service in app.app.services:
        for index in range(service.replicas):
            old = next(
                replica
                for replica in _running(cluster, app)
                if replica.service == service and replica.revision < revision
            )
            replaced.append(_replaced(cluster, old, Replica(app, service, revision, index), first=index == 0))
    return replaced


def _running(cluster: Cluster, app: Instance) -> list[Replica]:
    return [pod for pod in cluster.pods if pod.instance == app]


def _replaced(cluster: Cluster, old: Replica, new: Replica, *, first: bool) -> Replaced:
    home, was = cluster.places[old], cluster.nearness(old, cluster.places[old])
    room = cluster.with_room(new)
    near = {place: cluster.nearness(new, place) for place in room}
    (landing,) = cluster.place([new])
    came = cluster.nearness(new, cluster.places[new])
    offered = {*cluster.offered}
    best_offered = max((share for (node, _), share in near.items() if node in offered), default=0.0)
    cluster.end([old])
    return Replaced(landing, first, came, was, best_offered, max(near.values(), default=0.0), home not in room)


def summary(replaced: Iterable[Replaced]) -> str:
    firsts = [pod for pod in replaced if pod.first]
    near, best = _count(first.as_before for first in firsts), _count(first.as_possible for first in firsts)
    offered = _count(first.as_offered for first in firsts)
    full = _count(first.full for first in firsts if not first.as_before)
    return (
        f"of {len(firsts)} Deployments' first replacements {offered} as near their kin as any NUMA node with room "
        f"could have been that kube-scheduler offered ({best}: on any node), {near} as near as the pod before; where "
        f"not, its place was full at that moment in {full}"
    )


def figures(replaced: Sequence[Replaced]) -> dict[str, float]:
    firsts = [pod for pod in replaced if pod.first]
    return {
        "first replacements": len(firsts),
        "first as near as offered": _count(first.as_offered for first in firsts),
        "first as near as possible": _count(first.as_possible for first in firsts),
        "first as near as before": _count(first.as_before for first in firsts),
        "all as near as possible": _count(pod.as_possible for pod in replaced),
    }


def _count(of: Iterable[bool]) -> int:
    return sum(map(bool, of))
