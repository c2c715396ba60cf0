"""The observer's thread that plans: a thorough plan may take seconds, and the watch must not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from enforcer.log import Log
from placement.known import Weights, Workload
from placement.occupancy import Occupancy
from placement.plan import Plan
from placement.planning import AT_ONCE, EFFORT, make_plan
from placement.topology import Machine

log = Log("observer.planner")

REST = 20
"""A thorough plan is followed by so many times its own time without another: a twentieth of one CPU at most. What
happens meanwhile is planned at once.
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a plan is made of. weights: of pairs of workloads. talk: of pairs of pods. movable: keys of the seats that
    may move.
    """

    occupancy: Occupancy
    workloads: Sequence[Workload]
    weights: Weights
    talk: Weights = field(default_factory=dict)
    movable: frozenset[str] = frozenset()


def planned(machine: Machine, situation: Situation, previous: Plan | None, effort: int) -> Plan:
    """The plan around the members that sit there."""
    occupancy = situation.occupancy
    members = {key: seat.workload for key, seat in occupancy.seats.items() if seat.workload}
    return make_plan(
        machine, occupancy, members, situation.workloads, situation.weights, previous=previous, effort=effort
    )


class Planner:
    """Run `run` in a thread. Of the situations told meanwhile only the latest is planned for; `told` hears of each
    plan, and `then` of what it was made for, from that thread.
    """

    def __init__(
        self,
        machine: Machine,
        told: Callable[[Plan], None],
        then: Callable[[Situation], None] = lambda _situation: None,
    ) -> None:
        self._machine, self._told, self._then = machine, told, then
        self._changed = threading.Condition()
        self._waiting: Situation | None = None
        self._stopping = False
        self._plan: Plan | None = None
        self._rests_until = float("-inf")

    def consider(self, situation: Situation) -> None:
        with self._changed:
            self._waiting = situation
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def run(self) -> None:
        try:
            while (situation := self._next()) is not None:
                self._told(self._planned(situation))
                self._then(situation)
        except Exception:
            log.exception("nothing is planned any more")

    def _next(self) -> Situation | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._stopping)
            situation, self._waiting = self._waiting, None
            return None if self._stopping else situation

    def _planned(self, situation: Situation) -> Plan:
        began = time.monotonic()
        thorough = began >= self._rests_until
        self._plan = planned(self._machine, situation, self._plan, EFFORT if thorough else AT_ONCE)
        if thorough:
            now = time.monotonic()
            self._rests_until = now + REST * (now - began)
        return self._plan
