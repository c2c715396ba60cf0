"""One node as the extender knows it: its machine, what its enforcer reported, and the pods assumed to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import structlog

from extender.state.cells import Floats, table
from placement.decide.decide import Reason
from placement.model.cpuset import NumaSet
from placement.model.live_usage import NOTHING, Live
from placement.model.topology import Machine
from placement.state.occupancy import Allocation, Occupancy, Reservation

_log = structlog.get_logger("cluster")


@dataclass(frozen=True, slots=True)
class Assumption:
    """Room that a pod is expected to take, held until its enforcer reports the pod.

    until: on the clock of the cluster. bound: the pod is bound to the node; else it was only scored best there.
    """

    pod: str
    node: str
    numa_nodes: NumaSet
    reservations: tuple[Reservation, ...]
    allocations: tuple[Allocation, ...]
    until: float
    bound: bool = False

    def unreported(self, reported: Occupancy) -> Assumption | None:
        """What of it the enforcer has not shown yet; None when nothing is left."""
        reservations = tuple(
            reservation for reservation in self.reservations if reservation.key not in reported.reservations
        )
        live = (
            {(allocation.pod, allocation.name) for allocation in reported.allocations.values()}
            if self.allocations
            else set()
        )
        allocations = tuple(
            allocation for allocation in self.allocations if (allocation.pod, allocation.name) not in live
        )
        return (
            replace(self, reservations=reservations, allocations=allocations) if reservations or allocations else None
        )


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """What an enforcer decided for one container. outcome: unpromised, kept, declined or late."""

    pod: str
    namespace: str
    name: str
    container: str
    event: str
    numa_nodes: str
    cpus: str
    mems: str
    score: float
    reasons: tuple[Reason, ...]
    outcome: str
    nominated: str
    generation: int

    @property
    def sentences(self) -> list[str]:
        """The reasons, one sentence each."""
        return [str(reason) for reason in self.reasons]


@dataclass(frozen=True, slots=True)
class Report:
    """One report of an enforcer. base: the generation that it is a difference against; 0: it is everything.

    earlier: decisions that some extender has been told before.
    """

    generation: int
    base: int
    fingerprint: int
    reservations: tuple[Reservation, ...] = ()
    gone_reservations: tuple[str, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    gone_allocations: tuple[str, ...] = ()
    live: Live = NOTHING
    decisions: tuple[DecisionRow, ...] = ()
    earlier: tuple[DecisionRow, ...] = ()
    registered: bool | None = None

    @property
    def tells_placements(self) -> bool:
        """Whether it tells of placements, and not of live figures and decisions alone."""
        return bool(self.reservations or self.gone_reservations or self.allocations or self.gone_allocations)


class ReportRefused(Enum):
    """Why a report can't be applied: the enforcer is asked for everything."""

    UNKNOWN_BASE = "it is a difference against a generation that is not held here"
    FINGERPRINT = "its fingerprint differs from what it gives here"


@dataclass(frozen=True)
class NodeView:
    """Immutable: every change gives a new one, so that what was once scored can be explained from the same values."""

    name: str
    session: str
    version: str
    machine: Machine
    reported: Occupancy = field(default_factory=Occupancy)
    generation: int = 0
    fingerprint: int = 0
    registered: bool = True
    assumed: Mapping[str, Assumption] = field(default_factory=dict)

    @cached_property
    def occupancy(self) -> Occupancy:
        """What was reported, with the assumed pods in their expected places."""
        if not self.assumed:
            return self.reported
        reservations = {
            reservation.key: reservation for one in self.assumed.values() for reservation in one.reservations
        }
        allocations = {
            allocation.container: allocation for one in self.assumed.values() for allocation in one.allocations
        }
        # Unchecked: where the enforcer gave an assumed pod's CPUs to somebody else, the nomination will be declined.
        return self.reported.changed(reservations=reservations, allocations=allocations, checked=False)

    @cached_property
    def table(self) -> Floats | None:
        """As `table.table` has it; None where that raises, so that decide() is asked and its faults are contained."""
        try:
            return table(self.machine, self.occupancy)
        except Exception:  # noqa: BLE001 - decide() is asked about it, and other nodes are answered for
            _log.exception("a node's numbers can't be told", node=self.name)
            return None

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What was computed on this view, by whatever it depends on beside the view."""
        return {}

    @cached_property
    def group_reservations(self) -> Mapping[str, int]:
        """How many reservations each group has here, the assumed ones too."""
        return Counter(reservation.group for reservation in self.members if reservation.group)

    @cached_property
    def seated(self) -> frozenset[str]:
        """The uids of the opted-in pods that have a reservation here, the assumed ones too."""
        return frozenset(reservation.pod for reservation in self.members)

    @cached_property
    def members(self) -> tuple[Reservation, ...]:
        """The reservations of opted-in pods, the assumed ones too."""
        return tuple(reservation for reservation in self.occupancy.reservations.values() if reservation.opted_in)

    @cached_property
    def reported_members(self) -> frozenset[str]:
        """The uids of the opted-in pods that the enforcer reported."""
        return frozenset(reservation.pod for reservation in self.reported.reservations.values() if reservation.opted_in)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of the pods that the enforcer reported."""
        return frozenset(reservation.pod for reservation in self.reported.reservations.values())

    def applied(self, report: Report) -> NodeView | ReportRefused:
        """With the report in; pods that it shows are assumed no longer."""
        if report.base and report.base != self.generation:
            return ReportRefused.UNKNOWN_BASE
        reported = _after(self.reported if report.base else self._empty, report)
        if reported.fingerprint != report.fingerprint:
            return ReportRefused.FINGERPRINT
        return replace(
            self,
            reported=reported,
            generation=report.generation,
            fingerprint=report.fingerprint,
            registered=self.registered if report.registered is None else report.registered,
            assumed={pod: left for pod, one in self.assumed.items() if (left := one.unreported(reported))},
        )

    @property
    def _empty(self) -> Occupancy:
        return self.reported.emptied()

    def heir_of(self, held: NodeView | None) -> NodeView:
        """With what was assumed on the node before its enforcer began anew."""
        return self if held is None else replace(self, assumed=held.assumed)

    def assuming(self, one: Assumption) -> NodeView:
        """With this too; in place of what was assumed of the same pod."""
        before = self.without_assumed(one.pod)
        reservations = {reservation.key: reservation for reservation in one.reservations}
        allocations = {allocation.container: allocation for allocation in one.allocations}
        return _assuming(before, {**before.assumed, one.pod: one}, reservations, allocations)

    def without_assumed(self, pod: str) -> NodeView:
        """As if the pod had not been assumed here."""
        gone = self.assumed.get(pod)
        if gone is None:
            return self
        reservations = {
            reservation.key: self.reported.reservations.get(reservation.key) for reservation in gone.reservations
        }
        allocations = {
            allocation.container: self.reported.allocations.get(allocation.container) for allocation in gone.allocations
        }
        return _assuming(self, {key: one for key, one in self.assumed.items() if key != pod}, reservations, allocations)


def _assuming(
    before: NodeView,
    assumed: Mapping[str, Assumption],
    reservations: Mapping[str, Reservation | None],
    allocations: Mapping[str, Allocation | None],
) -> NodeView:
    """With these assumptions; reservations, allocations: what they change, None for what goes.

    The occupancy is carried on, not made anew: in a burst one node has hundreds of assumptions.
    """
    after = replace(before, assumed=assumed)
    if assumed:
        after.__dict__["occupancy"] = before.occupancy.changed(
            reservations=reservations, allocations=allocations, checked=False
        )
    return after


def _after(before: Occupancy, report: Report) -> Occupancy:
    """What goes is named apart from what comes, so that a key in both is there afterwards."""
    reservations: dict[str, Reservation | None] = dict.fromkeys(report.gone_reservations)
    reservations.update((reservation.key, reservation) for reservation in report.reservations)
    allocations: dict[str, Allocation | None] = dict.fromkeys(report.gone_allocations)
    allocations.update((allocation.container, allocation) for allocation in report.allocations)
    # Unchecked: the node is the truth, even where two containers claim the same CPUs.
    after = (
        before.changed(reservations=reservations, allocations=allocations, checked=False)
        if report.tells_placements
        else before
    )
    return after.with_live(before.live.after(report.live))
