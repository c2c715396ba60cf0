"""One node as the extender knows it: its machine, what its enforcer reported, and the pods assumed to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from extender.cluster.table import Floats, table
from placement.cpuset import NumaSet
from placement.decide import Reason
from placement.live import NOTHING, Live
from placement.occupancy import Holding, Occupancy, Seat, fingerprint
from placement.topology import Machine


@dataclass(frozen=True, slots=True)
class Assumption:
    """Room that a pod is expected to take, held until its enforcer reports the pod.

    until: on the clock of the cluster. bound: the pod is bound to the node; else it was only scored best there.
    """

    pod: str
    node: str
    numa_nodes: NumaSet
    seats: tuple[Seat, ...]
    holdings: tuple[Holding, ...]
    until: float
    bound: bool = False

    def unreported(self, reported: Occupancy) -> Assumption | None:
        """What of it the enforcer has not shown yet; None when nothing is left."""
        seats = tuple(seat for seat in self.seats if seat.key not in reported.seats)
        live = {(one.pod, one.name) for one in reported.holdings.values()} if self.holdings else set()
        holdings = tuple(one for one in self.holdings if (one.pod, one.name) not in live)
        return replace(self, seats=seats, holdings=holdings) if seats or holdings else None


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
    promised: str
    generation: int

    @property
    def sentences(self) -> list[str]:
        """The reasons, one sentence each."""
        return [str(one) for one in self.reasons]


@dataclass(frozen=True, slots=True)
class Report:
    """One report of an enforcer. base: the generation that it is a difference against; 0: it is everything.

    earlier: decisions that some extender has been told before.
    """

    generation: int
    base: int
    fingerprint: int
    seats: tuple[Seat, ...] = ()
    gone_seats: tuple[str, ...] = ()
    holdings: tuple[Holding, ...] = ()
    gone_holdings: tuple[str, ...] = ()
    live: Live = NOTHING
    decisions: tuple[DecisionRow, ...] = ()
    earlier: tuple[DecisionRow, ...] = ()
    registered: bool | None = None

    @property
    def tells_placements(self) -> bool:
        """Whether it tells of placements, and not of live figures and decisions alone."""
        return bool(self.seats or self.gone_seats or self.holdings or self.gone_holdings)


class Refused(Enum):
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
        seats = {seat.key: seat for one in self.assumed.values() for seat in one.seats}
        holdings = {holding.container: holding for one in self.assumed.values() for holding in one.holdings}
        # Unchecked: where the enforcer gave an assumed pod's CPUs to somebody else, the promise will be declined.
        return self.reported.changed(seats=seats, holdings=holdings, checked=False)

    @cached_property
    def table(self) -> Floats | None:
        """As `table.table` has it."""
        return table(self.machine, self.occupancy)

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What was computed on this view, by whatever it depends on beside the view."""
        return {}

    @cached_property
    def group_seats(self) -> Mapping[str, int]:
        """How many seats each group has here, the assumed ones too."""
        return Counter(seat.group for seat in self.members if seat.group)

    @cached_property
    def seated(self) -> frozenset[str]:
        """The uids of the opted-in pods that have a seat here, the assumed ones too."""
        return frozenset(seat.pod for seat in self.members)

    @cached_property
    def members(self) -> tuple[Seat, ...]:
        """The seats of opted-in pods, the assumed ones too."""
        return tuple(seat for seat in self.occupancy.seats.values() if seat.opted_in)

    @cached_property
    def pods(self) -> frozenset[str]:
        """The uids of the pods that the enforcer reported."""
        return frozenset(seat.pod for seat in self.reported.seats.values())

    def applied(self, report: Report) -> NodeView | Refused:
        """With the report in; pods that it shows are assumed no longer."""
        if report.base and report.base != self.generation:
            return Refused.UNKNOWN_BASE
        reported = _after(self.reported if report.base else self._empty, report)
        placed = self.fingerprint
        if not report.base or report.tells_placements:
            placed = fingerprint(reported.seats.values(), reported.holdings.values())
        if placed != report.fingerprint:
            return Refused.FINGERPRINT
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
        return Occupancy(reserved=self.reported.reserved, rules=self.reported.rules)

    def heir_of(self, held: NodeView | None) -> NodeView:
        """With what was assumed on the node before its enforcer began anew."""
        return self if held is None else replace(self, assumed=held.assumed)

    def assuming(self, one: Assumption) -> NodeView:
        """With this too; in place of what was assumed of the same pod."""
        before = self.without_assumed(one.pod)
        seats = {seat.key: seat for seat in one.seats}
        holdings = {holding.container: holding for holding in one.holdings}
        return _assuming(before, {**before.assumed, one.pod: one}, seats, holdings)

    def without_assumed(self, pod: str) -> NodeView:
        """As if the pod had not been assumed here."""
        gone = self.assumed.get(pod)
        if gone is None:
            return self
        seats = {seat.key: self.reported.seats.get(seat.key) for seat in gone.seats}
        holdings = {one.container: self.reported.holdings.get(one.container) for one in gone.holdings}
        return _assuming(self, {key: one for key, one in self.assumed.items() if key != pod}, seats, holdings)


def _assuming(
    before: NodeView,
    assumed: Mapping[str, Assumption],
    seats: Mapping[str, Seat | None],
    holdings: Mapping[str, Holding | None],
) -> NodeView:
    """With these assumptions; seats, holdings: what they change, None for what goes.

    The occupancy is carried on, not made anew: in a burst one node has hundreds of assumptions.
    """
    after = replace(before, assumed=assumed)
    if assumed:
        after.__dict__["occupancy"] = before.occupancy.changed(seats=seats, holdings=holdings, checked=False)
    return after


def _after(before: Occupancy, report: Report) -> Occupancy:
    """What goes is named apart from what comes, so that a key in both is there afterwards."""
    seats: dict[str, Seat | None] = dict.fromkeys(report.gone_seats)
    seats.update((seat.key, seat) for seat in report.seats)
    holdings: dict[str, Holding | None] = dict.fromkeys(report.gone_holdings)
    holdings.update((one.container, one) for one in report.holdings)
    # Unchecked: the node is the truth, even where two containers claim the same CPUs.
    after = before.changed(seats=seats, holdings=holdings, checked=False) if report.tells_placements else before
    return after.with_live(before.live.after(report.live))
