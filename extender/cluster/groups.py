"""The affinity groups as they stand: members, where they are, and the locality reached, every pair of members alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placement.occupancy import Seat


@dataclass(frozen=True, slots=True)
class Member:
    """One seat of a group. expected: it is assumed, not reported yet."""

    node: str
    seat: Seat
    expected: bool


def locality(members: Iterable[Member]) -> float | None:
    """The share of pairs of members on one NUMA node; a member over several counts on each in part. None below two."""
    together: Counter[tuple[str, int]] = Counter()
    alone = 0.0
    count = 0
    for one in members:
        count += 1
        part = 1 / max(1, len(one.seat.numa_nodes))
        for numa_node in one.seat.numa_nodes:
            together[one.node, numa_node] += part  # type: ignore[assignment]
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
                "uid": one.seat.pod,
                "pod": names.get(one.seat.pod),
                "node": one.node,
                "numa_nodes": str(one.seat.numa_nodes),
                "expected": one.expected,
            }
            for one in sorted(members, key=lambda one: (one.node, one.seat.numa_nodes.mask, one.seat.key))
        ],
    }
