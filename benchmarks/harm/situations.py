"""Which pods run beside each other: what they ask for, and what they really do, on a machine of two CPUs, each a NUMA
node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pod:
    """load, amount: as `worker` takes them. group: that it opts in to; empty: it has not opted in."""

    name: str
    milli: int
    load: str
    amount: float
    group: str = ""
    exclusive: bool = False

    @property
    def annotations(self) -> dict[str, str]:
        if not self.group:
            return {}
        return {"group.numakin.io": self.group} | ({"cpus.numakin.io": "exclusive"} if self.exclusive else {})


def _alike(count: int, name: str, milli: int, load: str, amount: float, group: str = "") -> tuple[Pod, ...]:
    return tuple(Pod(f"{name}-{number}", milli, load, amount, group) for number in range(count))


SITUATIONS: Mapping[str, tuple[Pod, ...]] = {
    "ten times the request": _alike(3, "member", 50, "served", 0.5, "shop"),
    "larger than a NUMA node": _alike(6, "member", 200, "served", 0.19, "shop"),
    "a hog beside kin": (*_alike(2, "member", 50, "busy", 1, "shop"), Pod("hog", 50, "busy", 1)),
    "exclusive beside bursts": (
        Pod("alone", 1000, "served", 0.7, "trading", exclusive=True),
        Pod("member", 200, "served", 0.15, "shop"),
        *_alike(2, "burst", 200, "bursts", 0.5),
    ),
    "a batch pod": (Pod("batch", 100, "busy", 2, "batch"), *_alike(2, "web", 200, "served", 0.15, "shop")),
    "90 % load": (*_alike(3, "a", 300, "served", 0.3, "a"), *_alike(3, "b", 300, "served", 0.3, "b")),
}
"""In the order in which their pods come."""
