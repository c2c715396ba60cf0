"""The affinity groups as they stand: members, where they are, and the locality reached, every pair of members alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.occupancy import Reservation

Place = tuple[str, NumaSet]
"""A node, and NUMA nodes of it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of a group, as one reservation. expected: it is assumed, not reported yet."""

    node: str
    reservation: Reservation
    expected: bool


def locality(members: Iterable[Member]) -> float | None:
    """The share of pairs of members on one NUMA node; a member over several counts on each in part. None below two."""
    return shared(Counter((member.node, member.reservation.numa_nodes) for member in members))


def shared(places: Mapping[Place, int]) -> float | None:
    """The share of pairs of members on one NUMA node, by how many members each place has; None below two."""
    together: defaultdict[tuple[str, int], float] = defaultdict(float)
    alone, count = 0.0, 0
    for (node, numa_nodes), members in places.items():
        count += members
        part = 1 / max(1, len(numa_nodes))
        for numa_node in numa_nodes:
            together[node, numa_node] += members * part
            alone += members * part * part
    if count < 2:
        return None
    return (sum(part * part for part in together.values()) - alone) / (count * (count - 1))


def group_row(group: str, members: list[Member], names: Mapping[str, str]) -> dict[str, Any]:
    """One group for the group list. names: uid -> NAMESPACE/NAME."""
    reached = locality(members)
    return {
        "group": group,
        "locality": None if reached is None else round(reached, 6),
        "members": [
            {
                "uid": member.reservation.pod,
                "pod": names.get(member.reservation.pod),
                "node": member.node,
                "numa_nodes": str(member.reservation.numa_nodes),
                "cache_domain": str(member.reservation.cache_domain),
                "expected": member.expected,
            }
            for member in sorted(
                members, key=lambda member: (member.node, member.reservation.numa_nodes.mask, member.reservation.key)
            )
        ],
    }
