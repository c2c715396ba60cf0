"""Groups that ended on several nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from benchmarks.cluster.driver import Cluster
from benchmarks.cluster.load import Instance, Replica


def split(cluster: Cluster, replicas: Iterable[Replica]) -> list[Instance]:
    """The groups among these whose members are on several nodes, though one of those has room for another member."""
    groups: dict[Instance, list[Replica]] = defaultdict(list)
    for replica in replicas:
        groups[replica.instance].append(replica)
    return [group for group, members in groups.items() if _split(cluster, members)]


def _split(cluster: Cluster, members: list[Replica]) -> bool:
    nodes = sorted({cluster.places[member][0] for member in members})
    if len(nodes) == 1:
        return False
    smallest = min(members, key=lambda member: member.cpu_milli)
    return any(cluster.fleet.call("could_hold", nodes, smallest.cpu_milli, smallest.memory).values())
