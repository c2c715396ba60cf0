"""Reports as differences: what changed between two occupancies, and what a reader needs who has none yet."""

from __future__ import annotations

from collections.abc import Iterable

from placement.state.occupancy import Occupancy
from proto import convert
from proto import report_pb2 as pb


def whole(after: Occupancy, decisions: Iterable[pb.DecisionRecord], *, registered: bool) -> pb.Report:
    """Everything, for a reader who starts."""
    return _report(Occupancy(), after, decisions, base=0, registered=registered)


def difference(
    before: Occupancy, after: Occupancy, decisions: Iterable[pb.DecisionRecord], *, registered: bool | None
) -> pb.Report:
    """What is new since `before`, on top of it. registered: None when unchanged."""
    return _report(before, after, decisions, base=before.generation, registered=registered)


def differ(before: Occupancy, after: Occupancy) -> bool:
    """Whether there is something to tell of the node itself; live figures change without its generation."""
    return before.generation != after.generation or before.live != after.live


def _report(
    before: Occupancy, after: Occupancy, decisions: Iterable[pb.DecisionRecord], *, base: int, registered: bool | None
) -> pb.Report:
    live = after.live.since(before.live)
    return pb.Report(
        generation=after.generation,
        base_generation=base,
        fingerprint=after.fingerprint,
        reservations=[
            convert.reservation_to(reservation)
            for key, reservation in after.reservations.items()
            if before.reservations.get(key) != reservation
        ],
        gone_reservations=[key for key in before.reservations if key not in after.reservations],
        allocations=[
            convert.allocation_to(allocation)
            for key, allocation in after.allocations.items()
            if before.allocations.get(key) != allocation
        ],
        gone_allocations=[key for key in before.allocations if key not in after.allocations],
        free_memory=live.free_memory,
        used_cpu=live.used_cpu,
        stalled=live.stalled,
        free_hugepages=convert.pages_to(live.free_hugepages),
        decisions=list(decisions),
        registered=registered,
    )
