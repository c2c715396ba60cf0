"""The affinity groups as they stand: members, where they are, and the locality reached, every pair of members alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placement.state.occupancy import Reservation


@dataclass(frozen=True, slots=True)
class Member:
    """One reservation of a group. expected: it is assumed, not reported yet."""

    node: str
    reservation: Reservation
    expected: bool


def locality(members: Iterable[Member]) -> float | None:
    """The share of pairs of members on one NUMA node; a member over several counts on each in part. None below two."""
    together: Counter[tuple[str, int]] = Counter()
    alone = 0.0
    count = 0
    for member in members:
        count += 1
        part = 1 / max(1, len(member.reservation.numa_nodes))
        for numa_node in member.reservation.numa_nodes:
            together[member.node, numa_node] += part  # type: ignore[assignment]
            alone += part * part
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
