"""What is published for others: a NodeResourceTopology for each node, an AffinityGroup for each group."""

from __future__ import annotations

from collections.abc import Iterator

from extender.cluster.board import Sight
from extender.cluster.groups import Member, locality
from extender.cluster.readout import Live, members
from extender.cluster.state import Picture
from extender.kube.affinitygroup import GroupStatus, MemberStatus, affinity_group
from extender.kube.nrt import topology
from extender.kube.publish import Desired


def objects(picture: Picture, live: Live) -> Iterator[Desired]:
    """As they should be now. A node without a live enforcer keeps what was last said of it."""
    for one in picture.sights:
        if live(one):
            yield _node(one)
    for group, found in members(picture).items():
        namespace, _, name = group.partition("/")
        told = tuple(_member(one, picture) for one in found if one.seat.pod in picture.names)
        yield affinity_group(GroupStatus(namespace, name, told, locality(found)))


def _node(sight: Sight) -> Desired:
    view = sight.view
    return topology(view.name, view.machine, view.reported)


def _member(one: Member, picture: Picture) -> MemberStatus:
    _, _, name = picture.names[one.seat.pod].partition("/")
    workload = picture.workloads.get(one.seat.pod, "").partition("/")[2]
    return MemberStatus(name, one.node, "" if one.expected else str(one.seat.numa_nodes), workload)
