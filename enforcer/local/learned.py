"""What the observer learned, as the hook is handed it and decides by it: two tables, kin weights and a plan.

Neither is worked through when it comes: a newcomer's row is read when the newcomer does, and its planned slot is
settled then, by who sits where at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import nlargest
from math import exp2

from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.plan import Plan, PlannedSlots
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import convert
from numakin.wire import local_pb2 as local

MOST_KIN = 50_000
"""Weights in one table, the heaviest: some 2.5 MB of the 4 MiB that the hook takes at once, beside workloads' names. It
hangs up on more, window by window.
"""

FORGOTTEN = 10
"""Half-lives after which a thousandth is left of what an earlier observer knew, and nothing counts."""


class Learned:
    """The latest tables. `kin` is what decide() gets."""

    def __init__(self) -> None:
        self._rows: dict[str, local.KinTable.Row] = {}
        self._weights: dict[str, Mapping[str, float]] = {}
        self._earlier: dict[str, dict[str, float]] = {}
        """What observers before this one knew, as of its start."""
        self._session, self._half_lives = "", 0.0
        self._plan = Plan()
        self._moved: dict[str, int] = {}
        self.version = 0
        """Another one after each change."""

    def weighed(self, table: local.KinTable) -> None:
        """An observer that was started anew has seen little yet. Beside it what the one before knew counts, faded by as
        much as it would have: together they are what that one would know by now.
        """
        if table.session != self._session:
            self._earlier = {key: {**self._weights_of(key)} for key in {**self._earlier, **self._rows}}
        elif table.half_lives > FORGOTTEN:
            self._earlier = {}
        self._session, self._half_lives = table.session, table.half_lives
        self._rows, self._weights = {row.pod: row for row in table.rows}, {}
        self.version += 1

    def planned(self, message: local.Plan) -> None:
        self._plan = plan_from(message)
        self.version += 1
        self._moved = {key: at for key, at in self._moved.items() if at > message.generation}

    def moved(self, reservations: Iterable[Reservation], generation: int) -> None:
        """These members have been moved: a plan that was made for an earlier occupancy has slots for their kin where
        they were, and for their likes where they left one.
        """
        self.version += 1
        for reservation in reservations:
            self._moved.update(dict.fromkeys(filter(None, (reservation.pod, reservation.workload)), generation))

    def forget(self, pod: str) -> None:
        """A pod that is gone for good."""
        for row in self._earlier.values():
            row.pop(pod, None)
        if self._knows(pod):
            for rows in (self._rows, self._earlier, self._weights):
                rows.pop(pod, None)
            self.version += 1

    def traffic_of(self, pod: str) -> Mapping[str, float]:
        """What the pod itself was seen to exchange with each pod that is here; its workload's past does not count."""
        return self._weights_of(pod) if self._knows(pod) else {}

    def kin(self, machine: Machine, occupancy: Occupancy, request: Request, nominated: Kin | None) -> Kin:
        """The nomination's kin, else what traffic taught of the pod, else of its workload; with the slot that the plan
        has for it now.
        """
        kin = nominated or Kin()
        known = None if kin.weights else next(filter(self._knows, (request.pod, request.workload)), None)
        if known is not None:
            row = self._rows.get(known)
            elsewhere = kin.elsewhere if nominated or row is None else row.elsewhere
            kin = replace(kin, weights=self._weights_of(known), elsewhere=elsewhere)
        slot = kin.planned
        if not slot and self._moved.keys().isdisjoint((request.workload, *kin.weights)):
            slot = self._plan.slot(machine, occupancy, request, kin)
        return replace(kin, planned=slot) if slot else kin

    def _knows(self, key: str) -> bool:
        """key: a pod's uid, or a workload."""
        return key in self._rows or key in self._earlier

    def _weights_of(self, key: str) -> Mapping[str, float]:
        """Made once for a row: each replica that is placed by it keeps them for a while, and they may be hundreds."""
        weights = self._weights.get(key)
        if weights is None:
            left, row = exp2(-self._half_lives), self._rows.get(key)
            made = {pod: left * weight for pod, weight in self._earlier.get(key, {}).items()}
            for peer in row.kin if row is not None else ():
                made[peer.pod] = made.get(peer.pod, 0.0) + peer.weight
            weights = self._weights[key] = made
        return weights


def kin_table(weights: Mapping[str, Mapping[str, float]], session: str = "", half_lives: float = 0.0) -> local.KinTable:
    """weights: by pod present, for each pod or workload that has kin. session: of the observer that learned them.
    half_lives: of traffic, for which it has watched.
    """
    made = local.KinTable(session=session, half_lives=half_lives)
    if sum(map(len, weights.values())) > MOST_KIN:
        weights = _heaviest(weights)
    for key, row in sorted(weights.items()):
        made.rows.add(pod=key, kin=[{"pod": pod, "weight": weight} for pod, weight in sorted(row.items())])
    return made


def _heaviest(weights: Mapping[str, Mapping[str, float]]) -> Mapping[str, Mapping[str, float]]:
    every = ((weight, key, pod) for key, row in weights.items() for pod, weight in row.items())
    kept: dict[str, dict[str, float]] = {}
    for weight, key, pod in nlargest(MOST_KIN, every):
        kept.setdefault(key, {})[pod] = weight
    return kept


def plan_to(plan: Plan) -> local.Plan:
    made = local.Plan(generation=plan.generation)
    for name, slots in plan.slots.items():
        made.workloads.add(
            name=name,
            slots=[{"numa_node": slot.numa_nodes.lowest, "count": slot.count} for slot in slots],
            pulls=plan.pulls.get(name, {}),
            demand=convert.demand_to(plan.demands[name]),
        )
    return made


def plan_from(message: local.Plan) -> Plan:
    """The plan without its locality, which the placement of newcomers does not need."""
    rows = message.workloads
    return Plan(
        slots={
            row.name: tuple(PlannedSlots(NumaSet(1 << slot.numa_node), slot.count) for slot in row.slots)
            for row in rows
        },
        pulls={row.name: dict(row.pulls) for row in rows},
        demands={row.name: convert.demand_from(row.demand) for row in rows},
        generation=message.generation,
    )
