"""Which share of traffic stays inside one NUMA node: what the product exists to raise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extender.state.groups import Member, locality
from extender.views.page.scene import Line, Reach, Scene


def shares(lines: Iterable[Line]) -> list[float] | None:
    """By `Reach`: inside one NUMA node, between NUMA nodes, between nodes; each line counts by its weight, what a
    crossing costs. None without traffic.
    """
    sums = dict.fromkeys(Reach, 0.0)
    for line in lines:
        sums[line.reach] += line.weight
    total = sum(sums.values())
    return [round(sums[reach] / total, 4) for reach in Reach] if total else None


def inside(uids: Iterable[str], scene: Scene) -> list[Line]:
    """The lines with both ends among these pods."""
    pods = set(uids)
    own = {line.pods: line for pod in pods for line in scene.lines_of.get(pod, ()) if line.peer(pod) in pods}
    return list(own.values())


def group_share(own: Sequence[Line], members: Iterable[Member]) -> float | None:
    """The share of a group's traffic inside one NUMA node; of its pairs of members where no traffic is known. None
    below two members.
    """
    by_traffic = shares(own)
    return by_traffic[0] if by_traffic else locality(members)


def group_shares(scene: Scene) -> dict[str, float]:
    """Of every group that has one, the largest group first."""
    largest_first = sorted(scene.groups.items(), key=lambda group: (-len(group[1]), group[0]))
    by_group = {
        name: group_share(inside((member.reservation.pod for member in members), scene), members)
        for name, members in largest_first
    }
    return {name: share for name, share in by_group.items() if share is not None}
