"""Reports as differences: what changed between two occupancies, and what a reader needs who has none yet."""

from __future__ import annotations

from collections.abc import Iterable

from placement.occupancy import Occupancy, fingerprint
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
        fingerprint=fingerprint(after.seats.values(), after.holdings.values()),
        seats=[convert.seat_to(one) for key, one in after.seats.items() if before.seats.get(key) != one],
        gone_seats=[key for key in before.seats if key not in after.seats],
        holdings=[convert.holding_to(one) for key, one in after.holdings.items() if before.holdings.get(key) != one],
        gone_holdings=[key for key in before.holdings if key not in after.holdings],
        free_memory=live.free_memory,
        used_cpu=live.used_cpu,
        stalled=live.stalled,
        free_hugepages=convert.pages_to(live.free_hugepages),
        decisions=list(decisions),
        registered=registered,
    )
