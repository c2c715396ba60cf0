"""What is found out of nodes for kube-scheduler's questions: prioritize goes on from what filter has found out, and a
thread from what the event loop has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.owing_lock import OwingLock
from extender.scoring.node_table import NodeTable
from extender.scoring.predict import Wanted
from extender.scoring.prepared import Found, Snapshot
from extender.scoring.shares import KinShares
from extender.scoring.weighing import beside_devices, few, nearly_all, over_arrays, within_quota
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults


class Snapshots:
    """lock: the cluster's. candidates: asked under it. clock: seconds."""

    def __init__(
        self,
        lock: OwingLock,
        nodes: NodeTable,
        candidates: Callable[[Wanted, Sequence[str]], Candidates],
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self._lock, self._nodes, self._candidates, self._faults, self._clock = lock, nodes, candidates, faults, clock
        self._shares = KinShares()
        self._last: Found | None = None

    def of(self, want: Wanted, names: Sequence[str], *, anew: bool = False) -> Snapshot:
        """The last one, where it is of the same question; anew for each filter, as of a pod that was woken."""
        self._last = snapshot = self.weighed(self._found(want, names, anew=anew))
        return snapshot

    def of_few(self, want: Wanted, names: Sequence[str], timeout: float, *, anew: bool = False) -> Snapshot | None:
        """None where that is no little work; what was found out by then is there for who asks again. timeout: seconds
        of silence after which a node is not live.
        """
        self._last = found = self._found(want, names, anew=anew)
        if not few(found.candidates, want):
            return None
        self._last = snapshot = self.weighed(found)
        return snapshot if nearly_all(snapshot.known, found.candidates.live(timeout)) else None

    def answered(self) -> None:
        """Nobody goes on from the last one."""
        self._last = None

    def _found(self, want: Wanted, names: Sequence[str], *, anew: bool = False) -> Found:
        last = None if anew else self._last
        with self._lock:
            now = self._clock()
            if last is not None and last.serves(want, names, now, self._nodes.holds):
                return last
            return Found(want, self._candidates(want, names), now, self._nodes.holds)

    def weighed(self, found: Found) -> Snapshot:
        """By arrays, as far as they tell."""
        if isinstance(found, Snapshot):
            return found
        want, candidates = found.want, found.candidates
        known = over_arrays(candidates, want, self._shares, self._faults)
        if (weighing := candidates.weighing) is not None and weighing.kept:
            with self._lock:
                self._nodes.keep(candidates, weighing, known)
        known = beside_devices(within_quota(known, candidates, want), candidates, want)
        return Snapshot(want, candidates, found.at, found.holds, known)
