"""What the observer learned, as the hook is handed it and decides by it: two tables, kin weights and a plan.

Neither is worked through when it comes: a newcomer's row is read when the newcomer does, and its planned seat is
settled then, by who sits where at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placement.cpuset import NumaSet
from placement.occupancy import Occupancy
from placement.plan import Plan, PlannedSeats
from placement.request import Kin, Request
from placement.topology import Machine
from proto import convert
from proto import local_pb2 as local


class Learned:
    """The latest tables. `kin` is what decide() is told."""

    def __init__(self) -> None:
        self._rows: dict[str, local.KinTable.Row] = {}
        self._plan = Plan()

    def weighed(self, table: local.KinTable) -> None:
        self._rows = {row.pod: row for row in table.rows}

    def planned(self, message: local.Plan) -> None:
        self._plan = plan_from(message)

    def forget(self, pod: str) -> None:
        """A pod that is gone for good."""
        self._rows.pop(pod, None)

    def kin(self, machine: Machine, occupancy: Occupancy, request: Request, promised: Kin | None) -> Kin:
        """The promise's kin, else what traffic taught of the pod, else of its workload; with the seat that the plan
        has for it now.
        """
        kin = promised or Kin()
        row = None if kin.weights else self._rows.get(request.pod) or self._rows.get(request.workload)
        if row is not None:
            elsewhere = kin.elsewhere if promised else row.elsewhere
            kin = replace(kin, weights={one.pod: one.weight for one in row.kin}, elsewhere=elsewhere)
        seat = kin.planned or self._plan.seat(machine, occupancy, request, kin)
        return replace(kin, planned=seat) if seat else kin


def kin_table(weights: Mapping[str, Mapping[str, float]]) -> local.KinTable:
    """weights: by pod present, for each pod or workload that has kin."""
    made = local.KinTable()
    for key, row in sorted(weights.items()):
        made.rows.add(pod=key, kin=[{"pod": pod, "weight": weight} for pod, weight in sorted(row.items())])
    return made


def plan_to(plan: Plan) -> local.Plan:
    made = local.Plan()
    for name, seats in plan.seats.items():
        made.workloads.add(
            name=name,
            seats=[{"numa_node": one.numa_nodes.lowest, "count": one.count} for one in seats],
            pulls=plan.pulls.get(name, {}),
            demand=convert.demand_to(plan.demands[name]),
        )
    return made


def plan_from(message: local.Plan) -> Plan:
    """As far as newcomers are concerned: how local it is stays with whoever made it."""
    rows = message.workloads
    return Plan(
        seats={
            row.name: tuple(PlannedSeats(NumaSet(1 << one.numa_node), one.count) for one in row.seats) for row in rows
        },
        pulls={row.name: dict(row.pulls) for row in rows},
        demands={row.name: convert.demand_from(row.demand) for row in rows},
    )
