"""The observer's thread that plans: a thorough plan may take seconds, and the watch must not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import nan

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.plan import Plan
from numakin.placement.plan.planner import AT_ONCE, EFFORT, make_plan
from numakin.placement.plan.problem import Weights, Workload
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.process.threads import IDLE, IDLE_S, Threaded, Threads

REST = 20
"""A thorough plan is followed by so many times its own time without another: a twentieth of one CPU at most. What
happens meanwhile is planned at once.
"""


CachePlace = tuple[NumaSet, CpuSet]
"""Of a reservation: its NUMA nodes, and the cache domain that it is kept within."""


def place_of(reservation: Reservation) -> CachePlace:
    return reservation.numa_nodes, reservation.cache_domain


@dataclass(frozen=True, slots=True)
class PlanningInput:
    """What a plan is made of. weights: of pairs of workloads. talk: of pairs of pods. movable: keys of the slots that
    may move. moves: whether they are looked for, as is done once a window.
    """

    occupancy: Occupancy
    workloads: Sequence[Workload]
    weights: Weights
    talk: Weights = field(default_factory=dict)
    movable: frozenset[str] = frozenset()
    moves: bool = True

    def at(self, now: Occupancy) -> PlanningInput:
        """Brought up to date, as planning may take longer than a window: who has moved meanwhile is to rest again."""
        reservations = self.occupancy.reservations
        still = (
            key
            for key in self.movable
            if key in now.reservations and place_of(now.reservations[key]) == place_of(reservations[key])
        )
        return replace(self, occupancy=now, movable=frozenset(still))


def planned(machine: Machine, situation: PlanningInput, previous: Plan | None, effort: int) -> Plan:
    """The plan around the members that sit there."""
    occupancy = situation.occupancy
    members = {key: reservation.workload for key, reservation in occupancy.reservations.items() if reservation.workload}
    return make_plan(
        machine, occupancy, members, situation.workloads, situation.weights, previous=previous, effort=effort
    )


@dataclass(frozen=True, slots=True)
class Locality:
    """Shares of the known traffic between members of this node that stay inside one NUMA node. planned: by the plan,
    over what is expected. NaN: not known yet.
    """

    now: float = nan
    planned: float = nan


def local_share(occupancy: Occupancy, talk: Weights) -> float:
    """Of the weight between members that are here; NaN without any."""
    homes = {uid: pod.numa_nodes for uid, pod in occupancy.whole_pods().items()}
    pairs = {pair: weight for pair, weight in talk.items() if homes.keys() >= {*pair}}
    local = sum(weight for (a, b), weight in pairs.items() if homes[a] == homes[b] and len(homes[a]) == 1)
    total = sum(pairs.values())
    return local / total if total > 0 else nan


class PlanningThread(Threaded):
    """A thread of its own. Of the situations received meanwhile only the latest is planned for; `send` receives each
    plan, and `then` of what it was made for once a window, from that thread.
    """

    def __init__(
        self,
        machine: Machine,
        send: Callable[[Plan], None],
        then: Callable[[PlanningInput], None] = lambda _situation: None,
        *,
        threads: Threads,
    ) -> None:
        self._machine, self._send, self._then = machine, send, then
        self._changed = threading.Condition()
        self._waiting: PlanningInput | None = None
        self._latest: PlanningInput | None = None
        self._thread = threads.thread("planner", self._round, wake=self._wake)
        self._plan: Plan | None = None
        self.locality = Locality()
        self._rests_until = float("-inf")

    def consider(self, situation: PlanningInput) -> None:
        with self._changed:
            self._waiting = self._latest = situation
            self._changed.notify()

    def recount(self, workloads: Sequence[Workload], occupancy: Occupancy) -> None:
        """The latest situation with other numbers of replicas, for a plan before the next window."""
        with self._changed:
            if self._latest is None or workloads == self._latest.workloads:
                return
            waiting = self._waiting or replace(self._latest, movable=frozenset(), moves=False)
            self._waiting = self._latest = replace(waiting.at(occupancy), workloads=workloads)
            self._changed.notify()

    def on(self, machine: Machine) -> None:
        """Plans are made for this machine from now on; the situation that waits is of the one before."""
        with self._changed:
            self._machine, self._plan, self._waiting, self._latest = machine, None, None, None

    def send_again(self) -> None:
        """The latest plan; from any thread."""
        plan = self._plan
        if plan is not None:
            self._send(plan)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _round(self) -> object:
        waiting = self._next()
        if waiting is None:
            return IDLE
        situation, machine = waiting
        plan = self._planned(situation, machine)
        if plan is None:
            return None
        self.locality = Locality(local_share(situation.occupancy, situation.talk), plan.locality)
        self._send(plan)
        if situation.moves:
            self._then(situation)
        return None

    def _next(self) -> tuple[PlanningInput, Machine] | None:
        """What waits, and the machine that it is of."""
        stopping = self._thread.stopping
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or stopping.is_set(), IDLE_S)
            situation, self._waiting = self._waiting, None
            return None if stopping.is_set() or situation is None else (situation, self._machine)

    def _planned(self, situation: PlanningInput, machine: Machine) -> Plan | None:
        """None where the machine has changed meanwhile: the plan is of one that is no more."""
        began = time.monotonic()
        thorough = began >= self._rests_until
        plan = planned(machine, situation, self._plan, EFFORT if thorough else AT_ONCE)
        if thorough:
            now = time.monotonic()
            self._rests_until = now + REST * (now - began)
        with self._changed:
            if machine is not self._machine:
                return None
            self._plan = plan
        return plan
