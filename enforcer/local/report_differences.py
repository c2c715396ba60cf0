"""Reports as differences: what changed between two states of a node, and everything for a reader who has none yet.

The hook sends them to the observer (`enforcer/hook/outbox.py`), which sends each extender what that one lacks
(`enforcer/report/backlog.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from numakin.placement.state.occupancy import Occupancy
from numakin.placement.state.yielded import NONE, Yielded
from numakin.wire import convert
from numakin.wire import report_pb2 as pb

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ReportedNode:
    """What reports say of a node. registered: whether the runtime has the hook."""

    occupancy: Occupancy
    registered: bool
    yielded: Yielded = NONE

    def differs_from(self, before: ReportedNode) -> bool:
        """Live figures change without the occupancy's generation."""
        now, then = self.occupancy, before.occupancy
        changed = now.generation != then.generation or now.live != then.live
        return changed or self.registered != before.registered or self.yielded != before.yielded


def report(before: ReportedNode | None, after: ReportedNode, decisions: Iterable[pb.DecisionRecord] = ()) -> pb.Report:
    """What is new since `before`, on top of it; None: everything."""
    then, now = before.occupancy if before is not None else Occupancy(), after.occupancy
    live = now.live.since(then.live)
    return pb.Report(
        generation=now.generation,
        base_generation=then.generation,
        fingerprint=now.fingerprint,
        reservations=map(convert.reservation_to, _new(then.reservations, now.reservations)),
        gone_reservations=_gone(then.reservations, now.reservations),
        allocations=map(convert.allocation_to, _new(then.allocations, now.allocations)),
        gone_allocations=_gone(then.allocations, now.allocations),
        free_memory=live.free_memory,
        used_cpu=live.used_cpu,
        stalled=live.stalled,
        hot=convert.hot_to(live.hot),
        free_hugepages=convert.pages_to(live.free_hugepages),
        free_devices=convert.devices_to(live.devices),
        decisions=decisions,
        registered=after.registered if before is None or after.registered != before.registered else None,
        yielded=convert.yielded_to(after.yielded) if before is None or after.yielded != before.yielded else None,
    )


def _new(before: Mapping[str, Item], after: Mapping[str, Item]) -> list[Item]:
    """By identity first: what has not changed is mostly the same object."""
    if after is before:
        return []
    return [item for key, item in after.items() if (old := before.get(key)) is not item and old != item]


def _gone(before: Mapping[str, Item], after: Mapping[str, Item]) -> list[str]:
    return [] if after is before else [key for key in before if key not in after]
