"""Moves that are told and not made (`--moves plan`): what would be moved now, and what of it was told before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from enforcer.hook.ledger import Ledger
from numakin.wire import local_pb2 as local

MOST_TOLD = 256
"""Members' ways that were told and are not told again; the oldest go first."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One member's way, in words."""

    pod: str
    source: str
    target: str
    why: str


class PlannedMoves:
    """`now`: as of the latest window."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._told: dict[tuple[str, str, str], None] = {}
        self.now: tuple[PlannedMove, ...] = ()

    def replaced(self, steps: Sequence[local.Moves.Step]) -> None:
        """steps: that hold now. The log and the metric have each way once."""
        self.now = tuple(self._planned(step, way) for step in steps for way in step.ways)

    def _planned(self, step: local.Moves.Step, way: local.Moves.Way) -> PlannedMove:
        ledger = self._ledger
        container = min(ledger.occupancy.directory.by_reservation[way.reservation])
        member = ledger.residents.now()[container]
        move = PlannedMove(f"{member.namespace}/{member.pod_name}", *_ends(way), _why(step))
        key = (way.reservation, way.target, way.target_domain)
        if key not in self._told:
            ledger.records.move_planned(member, move.source, move.target, move.why)
        self._told[key] = None
        if len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
        return move


def _ends(way: local.Moves.Way) -> tuple[str, str]:
    if way.target_domain:
        return f"CPUs {way.source_domain}", f"CPUs {way.target_domain}"
    return f"NUMA node {way.source}", f"NUMA node {way.target}"


def _why(step: local.Moves.Step) -> str:
    where = "into one cache" if step.ways[0].target_domain else "home"
    others = len(step.ways) - 1
    together = f", with {others} other{'s' if others > 1 else ''} that would move" if others else ""
    return f"{step.gain:.1%} of the traffic here would come {where}{together}"
