"""Pods that were refused everywhere, and which of them some node would take now.

kube-scheduler's questions go before: a round asks decide() a bounded number of times. What was decided on a node's view
is remembered there, so that a round that had to end early goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.scoring.predict import Wanted
from extender.scoring.strict import admits
from extender.scoring.weighing import holds, likeness, remember
from extender.state.column_store import Candidates
from extender.state.faults import Faults
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from placement.decide.decide import Kin

MOST_DECIDED = 25
"""Times that decide() is asked in one round: some 0.1 s."""

MOST_REFUSED = 200
"""Pods that are remembered to be woken; kube-scheduler tries any other again after some minutes."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """pods: those that a node would take. complete: whether every waiting pod was compared with every node."""

    pods: tuple[PodRow, ...]
    complete: bool


class RefusedPods:
    """Under the cluster's lock. The oldest are forgotten first."""

    def __init__(self) -> None:
        self._waiting: dict[str, Wanted] = {}
        self._turn = 0

    def answered(self, want: Wanted, *, everywhere: bool) -> None:
        """What the filter said of the pod just now."""
        self._waiting.pop(want.pod.uid, None)
        if everywhere:
            self._waiting[want.pod.uid] = want
        if len(self._waiting) > MOST_REFUSED:
            del self._waiting[next(iter(self._waiting))]

    def waiting(self) -> list[Wanted]:
        return list(self._waiting.values())

    def in_turn(self) -> list[Wanted]:
        """Where a round has to end early, the next begins elsewhere."""
        waiting = self.waiting()
        self._turn = (self._turn + 1) % max(1, len(waiting))
        return waiting[self._turn :] + waiting[: self._turn]

    def take(self, pods: Iterable[PodRow]) -> tuple[PodRow, ...]:
        """Those of these that still wait; from now on they do not."""
        return tuple(pod for pod in pods if self._waiting.pop(pod.uid, None) is not None)

    def forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._waiting.pop(uid, None)


class WelcomeRound:
    """candidates: the changed nodes, as a pod finds them. timeout: seconds of silence; then a node is not asked."""

    def __init__(self, candidates: Callable[[Wanted], Candidates], timeout: float, faults: Faults) -> None:
        self._candidates, self._timeout, self._faults = candidates, timeout, faults
        self._left = MOST_DECIDED
        self._complete = True

    def among(self, waiting: Sequence[Wanted]) -> Welcome:
        return Welcome(tuple(want.pod for want in waiting if self._welcome(want)), self._complete)

    def _welcome(self, want: Wanted) -> bool:
        candidates = self._candidates(want)
        views = candidates.fresh(self._timeout)
        fresh = np.fromiter((view is not None for view in views), np.bool_, len(views))
        if (holds(candidates, want, self._faults) & fresh).any():
            return True
        return any(
            self._admits(view, want, kin) for view, kin in zip(views, candidates.kins, strict=True) if view is not None
        )

    def _admits(self, view: NodeView, want: Wanted, kin: Kin) -> bool:
        key = ("admits", likeness(view, want, kin))
        admitted: bool | None = view.memo.get(key)
        if admitted is None and self._left <= 0:
            self._complete = False
            return False
        if admitted is None:
            self._left -= 1
            admitted = False
            with self._faults.contained(view.name):
                admitted = admits(view, want, kin)
            remember(view, key, admitted)
        return admitted
