"""Which pods that were refused everywhere some node would take now: looked for when nodes have changed.

kube-scheduler's questions go before: a look asks decide() a bounded number of times, and takes its candidate_views one
by one. What was found out of a node's view is remembered there, so that a look that had to end early goes on where it
was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.scoring.node_table import CandidateView
from extender.scoring.predict import Wanted
from extender.scoring.strict import admits
from extender.scoring.weighing import holds, likeness, remember
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from placement.decide.decide import Kin

MOST_DECIDED = 25
"""Times that decide() is asked in one look: some 0.1 s."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """pods: those that a node would take. complete: whether all was looked at."""

    pods: tuple[PodRow, ...]
    complete: bool


class Look:
    """candidates: at the changed nodes, for a pod. timeout: seconds of silence after which a node is not asked."""

    def __init__(self, candidates: Callable[[Wanted], CandidateView], timeout: float, faults: Faults) -> None:
        self._glance, self._timeout, self._faults = candidates, timeout, faults
        self._left = MOST_DECIDED
        self._complete = True

    def at(self, waiting: Sequence[Wanted]) -> Welcome:
        return Welcome(tuple(want.pod for want in waiting if self._welcome(want)), self._complete)

    def _welcome(self, want: Wanted) -> bool:
        candidates = self._glance(want)
        views = candidates.cut.fresh(self._timeout)
        fresh = np.fromiter((view is not None for view in views), np.bool_, len(views))
        if (holds(candidates, want, self._faults) & fresh).any():
            return True
        return any(
            self._admits(view, want, kin) for view, kin in zip(views, candidates.kins, strict=True) if view is not None
        )

    def _admits(self, view: NodeView, want: Wanted, kin: Kin) -> bool:
        key = ("admits", likeness(view, want, kin))
        found: bool | None = view.memo.get(key)
        if found is None and self._left <= 0:
            self._complete = False
            return False
        if found is None:
            self._left -= 1
            found = False
            with self._faults.contained(view.name):
                found = admits(view, want, kin)
            remember(view, key, found)
        return found
