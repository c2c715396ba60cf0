"""What is found out of nodes for kube-scheduler's questions: prioritize goes on from what filter has found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from extender.scoring.node_table import NodeTable
from extender.scoring.predict import Wanted
from extender.scoring.prepared import Snapshot
from extender.scoring.shares import KinShares
from extender.scoring.weighing import beside_devices, over_arrays, within_quota
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults


class Snapshots:
    """lock: the cluster's. candidates: asked under it. clock: seconds."""

    def __init__(
        self,
        lock: Lock,
        nodes: NodeTable,
        candidates: Callable[[Wanted, Sequence[str]], Candidates],
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self._lock, self._nodes, self._candidates, self._faults, self._clock = lock, nodes, candidates, faults, clock
        self._shares = KinShares()
        self._last: Snapshot | None = None

    def of(self, want: Wanted, names: Sequence[str], *, anew: bool = False) -> Snapshot:
        """The last one, where it is of the same question; anew for each filter, as of a pod that was woken."""
        last = None if anew else self._last
        with self._lock:
            now = self._clock()
            if last is not None and last.serves(want, names, now, self._nodes.holds):
                return last
            candidates, holds = self._candidates(want, names), self._nodes.holds
        self._last = snapshot = self.weighed(want, candidates, now, holds)
        return snapshot

    def weighed(self, want: Wanted, candidates: Candidates, at: float, holds: int) -> Snapshot:
        """By arrays, as far as they tell. at, holds: as `Snapshot` has them."""
        known = over_arrays(candidates, want, self._shares, self._faults)
        if (weighing := candidates.weighing) is not None and weighing.kept:
            with self._lock:
                self._nodes.keep(candidates, weighing, known)
        known = beside_devices(within_quota(known, candidates, want), candidates, want)
        return Snapshot(want, candidates, at, holds, known)

    def answered(self) -> None:
        """Nobody goes on from the last one."""
        self._last = None
