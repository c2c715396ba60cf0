"""Pods that were refused everywhere, and which of them some node would take now.

kube-scheduler's questions go before: a round asks decide() a bounded number of times. What was decided on a node's view
is remembered there, so that a round that had to end early goes on where it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from extender.scoring.predict import Wanted, predict
from extender.scoring.shares import KinShares
from extender.scoring.weighing import beside_devices, likeness, over_arrays, within_quota
from extender.state.columns.candidates import Candidates
from extender.state.faults import Faults
from extender.state.node_view import Assumption, NodeView
from extender.state.pods import PodRow
from numakin.placement.decide.decide import Kin

MOST_DECIDED = 25
"""Times that decide() is asked in one round: some 0.1 s."""

MOST_REFUSED = 200
"""Pods that are remembered to be woken; kube-scheduler tries any other again after some minutes."""

WOKEN_S = 15.0
"""How long the place of a pod that was woken counts as taken: kube-scheduler's backoff is at most 10 s."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """pods: those that a node would take. complete: whether every waiting pod was compared with every node."""

    pods: tuple[PodRow, ...]
    complete: bool


class RefusedPods:
    """Under the cluster's lock. The oldest are forgotten first."""

    def __init__(self) -> None:
        self._waiting: dict[str, Wanted] = {}
        self._woken: dict[str, Assumption] = {}
        self._turn = 0

    def answered(self, want: Wanted, *, everywhere: bool) -> None:
        """What the filter answered for the pod just now."""
        self.forget((want.pod.uid,))
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

    def woken(self, now: float) -> list[Assumption]:
        """The places of pods that were woken lately and that kube-scheduler has not asked about since."""
        self._woken = {uid: place for uid, place in self._woken.items() if place.until > now}
        return list(self._woken.values())

    def wake(self, places: Iterable[Assumption], now: float) -> tuple[PodRow, ...]:
        """Those of the pods of these places that still wait; they are given some time to take their place."""
        woken = []
        for place in places:
            want = self._waiting.pop(place.pod, None)
            if want is not None:
                woken.append(want.pod)
                self._woken[place.pod] = replace(place, until=now + WOKEN_S)
        return tuple(woken)

    def take(self, pods: Iterable[PodRow]) -> tuple[PodRow, ...]:
        """Those of these that still wait; from now on they do not."""
        return tuple(pod for pod in pods if self._waiting.pop(pod.uid, None) is not None)

    def forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._waiting.pop(uid, None)
            self._woken.pop(uid, None)


class WelcomeRound:
    """Each pod that is welcome takes its place for the rest of the round, so that only as many are woken as fit.

    candidates: the changed nodes, as a pod finds them. woken: places of pods of earlier rounds. timeout: seconds of
    silence after which a node is not asked. places: of the pods that are welcome.
    """

    def __init__(
        self, candidates: Callable[[Wanted], Candidates], woken: Iterable[Assumption], timeout: float, faults: Faults
    ) -> None:
        self._candidates, self._timeout, self._faults = candidates, timeout, faults
        self._taken: dict[str, list[Assumption]] = defaultdict(list)
        for place in woken:
            self._taken[place.node].append(place)
        self.places: list[Assumption] = []
        self._left = MOST_DECIDED
        self._shares = KinShares()
        self._complete = True

    def among(self, waiting: Sequence[Wanted]) -> Welcome:
        return Welcome(tuple(want.pod for want in waiting if self._takes_anywhere(want)), self._complete)

    def _takes_anywhere(self, want: Wanted) -> bool:
        candidates = self._candidates(want)
        views = candidates.fresh(self._timeout)
        known = over_arrays(candidates, want, self._shares, self._faults)
        fits = beside_devices(within_quota(known, candidates, want), candidates, want).sure.tolist()
        certain_first = sorted(range(len(views)), key=lambda at: not fits[at])
        return any(
            self._takes(view, want, candidates.kins.of(view.name))
            for at in certain_first
            if (view := views[at]) is not None
        )

    def _takes(self, view: NodeView, want: Wanted, kin: Kin) -> bool:
        """What was decided is remembered on the view where no pod has taken a place."""
        taken = self._taken.get(view.name, ())
        key = ("admits", likeness(view, want, kin))
        if not taken and view.memo.get(key) is False:
            return False
        if self._left <= 0:
            self._complete = False
            return False
        self._left -= 1
        place = None
        with self._faults.contained(view.name):
            place = self._place(view.assuming(*taken), want, kin)
        if place is None:
            if not taken:
                view.remember(key, answer=False)
            return False
        self._taken[view.name].append(place)
        self.places.append(place)
        return True

    def _place(self, view: NodeView, want: Wanted, kin: Kin) -> Assumption | None:
        prediction = predict(view.machine, view.occupancy, want, kin)
        if not (prediction.fits and prediction.admitted):
            return None
        return Assumption(
            want.pod.uid,
            view.name,
            prediction.numa_nodes,
            prediction.reservations,
            prediction.allocations,
            until=0.0,
            devices=want.pod.devices,
        )
