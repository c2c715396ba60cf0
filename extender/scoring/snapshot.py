"""What was found out about a pod's nodes, for who goes on: prioritize after filter, a thread after the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from extender.scoring.predict import Wanted
from extender.scoring.single import NodeScores
from extender.state.column_store import Candidates

LASTS_S = 0.5
"""How long: kube-scheduler runs its other filters in between. What nodes report meanwhile is for the next pod."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """at: on the cluster's clock. holds: as `NodeTable.holds` was. known: as `weighing.over_arrays` has them."""

    want: Wanted
    candidates: Candidates
    known: NodeScores
    at: float
    holds: int

    def serves(self, want: Wanted, names: Sequence[str], now: float, holds: int) -> bool:
        """Whether it is of this very question, and no place was taken or given up since."""
        return self.want is want and self.candidates.names is names and self.lasts(now, holds)

    def lasts(self, now: float, holds: int) -> bool:
        return self.holds == holds and now - self.at < LASTS_S
