"""How much of what a pod talks with is where it is, as things are now."""

from __future__ import annotations

from dataclasses import dataclass

from extender.cluster import Cluster
from numakin.placement.model.cpuset import NumaSet


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a pod is, reported or assumed, all of its containers together. let_out: where it runs meanwhile, as its
    home is hot.
    """

    node: str
    numa_nodes: NumaSet
    let_out: NumaSet = NumaSet()


@dataclass(frozen=True, slots=True)
class Nearness:
    """near: weight of the kin that are wholly on the pod's NUMA nodes, of all. traffic: the kin are known by it; else
    they are the others of its group, each of weight 1.
    """

    near: float
    all: float
    traffic: bool

    @property
    def share(self) -> float:
        return self.near / self.all

    def __str__(self) -> str:
        if self.traffic:
            return f"{self.share:.0%} of what it talks with is there"
        near, others = round(self.near), round(self.all)
        if others == 1:
            return f"the other pod of its group is {'' if near else 'not '}there"
        if near == others:
            return f"all {others} others of its group are there"
        return f"{near} of the {others} others of its group {'is' if near == 1 else 'are'} there"


def place(cluster: Cluster, uid: str) -> Whereabouts | None:
    """None of a pod that no node is known to have."""
    return places(cluster, [uid]).get(uid)


def places(cluster: Cluster, uids: list[str]) -> dict[str, Whereabouts]:
    """By uid, those that are placed."""
    return {
        uid: Whereabouts(
            node,
            NumaSet.of(numa_node for reservation in there for numa_node in reservation.numa_nodes),
            NumaSet.of(numa_node for reservation in there for numa_node in reservation.let_out),
        )
        for uid, (node, there) in cluster.reservations_of(uids).items()
    }


def nearness(cluster: Cluster, uid: str, group: str, here: Whereabouts) -> Nearness | None:
    """By traffic where some is known, else by the group that the pod names; None where it has no kin."""
    partners = {peer: weight for peer, weight in cluster.known.partners.get(uid, {}).items() if weight > 0}
    placed = places(cluster, [*partners])
    if placed:
        near = sum(partners[peer] for peer, there in placed.items() if _inside(there, here))
        return Nearness(near, sum(partners[peer] for peer in placed), traffic=True)
    view = cluster.view(here.node)
    others = cluster.group_size(group) - 1
    if view is None or not group or others < 1:
        return None
    members = {view.occupancy.reservations[key].pod for key in view.occupancy.directory.by_group.get(group, ())}
    together = places(cluster, sorted(members - {uid}))
    return Nearness(float(sum(_inside(there, here) for there in together.values())), float(others), traffic=False)


def _inside(there: Whereabouts, here: Whereabouts) -> bool:
    return there.node == here.node and there.numa_nodes <= here.numa_nodes
