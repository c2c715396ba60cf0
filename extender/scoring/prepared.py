"""An answer to prioritize as it is worked out, before the pod's room is held: first what was found out about its nodes,
from which prioritize goes on after filter, then the offer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from extender.scoring.history import ExplainRow, Offer
from extender.scoring.node_table import NodeTable
from extender.scoring.points import points
from extender.scoring.predict import PredictedPlace, Wanted, place_on_one, predict
from extender.scoring.shares import KinShares
from extender.scoring.single import NodeScores
from extender.scoring.weighing import beside_devices, over_arrays, weigh, within_quota
from extender.state.columns.candidates import Candidates, age_factor
from extender.state.faults import Faults

LASTS_S = 0.5
"""How long a snapshot lasts: kube-scheduler runs its other filters in between. What nodes report meanwhile is for the
next pod.
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """at: on the cluster's clock. holds: as `NodeTable.holds` was. known: as `weighing.within_quota` has them."""

    want: Wanted
    candidates: Candidates
    at: float
    holds: int
    known: NodeScores

    def serves(self, want: Wanted, names: Sequence[str], now: float, holds: int) -> bool:
        """Whether it is of this very question, and no place was taken or given up since."""
        return self.want is want and self.candidates.names is names and self.lasts(now, holds)

    def lasts(self, now: float, holds: int) -> bool:
        return self.holds == holds and now - self.at < LASTS_S


@dataclass(frozen=True, slots=True)
class Prepared:
    """snapshot: what the offer is made of. leader: the position of the node that is ahead, where one would take the
    pod.
    """

    snapshot: Snapshot
    offer: Offer
    leader: int | None = None

    @property
    def node(self) -> str:
        """The leader's name."""
        return "" if self.leader is None else self.offer.names[self.leader]

    def place(self, faults: Faults) -> PredictedPlace | None:
        """What the pod gets there; None where it does not fit, or that can't be computed."""
        if self.leader is None:
            return None
        row, known = self.offer.row(self.leader), self.snapshot.known
        home = int(known.homes[self.leader]) if known.homes is not None and known.sure[self.leader] else None
        return _place(row, self.offer.want, home, faults)


def prepared(snapshot: Snapshot, timeout: float, faults: Faults, at: float) -> Prepared:
    """timeout: seconds of silence after which a node is not live. at: now, on the cluster's clock."""
    want, candidates = snapshot.want, snapshot.candidates
    weighed = weigh(candidates, want, snapshot.known, candidates.live(timeout), faults)
    factors = age_factor(candidates.ages, timeout)
    ranked = points(candidates, weighed, factors, want.group or want.pod.workload)
    names, kins = candidates.names, candidates.kins
    hidden = bool(names) and kins.no_kin.elsewhere > 0 and not weighed.kin.any()
    offer = Offer(want, at, names, candidates.views, kins, ranked.scores, candidates.ages, hidden, candidates.domains)
    return Prepared(snapshot, offer, ranked.leader)


def _place(leader: ExplainRow, want: Wanted, home: int | None, faults: Faults) -> PredictedPlace | None:
    """home: the NUMA node, where it is known."""
    view = leader.view
    if view is None:
        return None
    with faults.contained(leader.node):
        place = place_on_one(view.machine, view.occupancy, want, home) if home is not None else None
        return place or predict(view.machine, view.occupancy, want, leader.kin).place
    return None


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
        """No call goes on from the last one."""
        self._last = None
