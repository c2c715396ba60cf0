"""Reports as differences: what changed between two occupancies, and what a reader needs who has none yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placement.occupancy import Occupancy, fingerprint
from proto import convert
from proto import report_pb2 as pb

NOTABLE = 64
"""Free memory is told again when it changed by more than a 64th of the NUMA node's memory."""


def whole(after: Occupancy, decisions: Iterable[pb.DecisionRecord], *, registered: bool) -> pb.Report:
    """Everything, for a reader who starts."""
    return _report(Occupancy(), after, decisions, base=0, registered=registered, free=after.free_memory)


def difference(
    before: Occupancy,
    after: Occupancy,
    decisions: Iterable[pb.DecisionRecord],
    *,
    registered: bool | None,
    free: Mapping[int, int],
) -> pb.Report:
    """What is new since `before`, on top of it. registered: None when unchanged; free: the notable changes of free
    memory.
    """
    return _report(before, after, decisions, base=before.generation, registered=registered, free=free)


def notable(told: Mapping[int, int], now: Mapping[int, int], total: Mapping[int, int]) -> dict[int, int]:
    """The NUMA nodes whose free memory is worth telling again."""
    return {one: free for one, free in now.items() if abs(free - told.get(one, -1)) > total.get(one, 0) // NOTABLE}


def _report(
    before: Occupancy,
    after: Occupancy,
    decisions: Iterable[pb.DecisionRecord],
    *,
    base: int,
    registered: bool | None,
    free: Mapping[int, int],
) -> pb.Report:
    return pb.Report(
        generation=after.generation,
        base_generation=base,
        fingerprint=fingerprint(after.seats.values(), after.holdings.values()),
        seats=[convert.seat_to(one) for key, one in after.seats.items() if before.seats.get(key) != one],
        gone_seats=[key for key in before.seats if key not in after.seats],
        holdings=[convert.holding_to(one) for key, one in after.holdings.items() if before.holdings.get(key) != one],
        gone_holdings=[key for key in before.holdings if key not in after.holdings],
        free_memory=dict(free),
        decisions=list(decisions),
        registered=registered,
    )
