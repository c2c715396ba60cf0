"""One node as the extender knows it: its machine, what its enforcer reported, and the pods assumed to come."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from extender.state.columns.arrays import Floats
from extender.state.columns.cells import Counted, table
from extender.state.node_index import NodeIndex
from extender.state.node_report import Report, ReportRefused
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.live_usage import Devices, Live
from numakin.placement.model.topology import Machine
from numakin.placement.plan.problem import CpuAndMemory
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from numakin.placement.state.yielded import NONE, Yielded
from numakin.process.log import Log
from numakin.wire.bounds import ALLOCATIONS, HUGEPAGE_SIZES, RESERVATIONS
from numakin.wire.report_format import REPORT_FORMAT

_log = Log("cluster")

REMEMBERED = 64
"""Answers remembered on one view."""

UNMADE = Occupancy()
"""In place of an occupancy that is to be made."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Room that a pod is expected to take, held until its enforcer reports the pod.

    until: on the clock of the cluster. bound: the pod is bound to the node; else it was only scored best there.
    devices: that it asks for. gang: as `PodRow` has it. private: it counts for the pods of its gang alone, of which
    none is bound yet.
    """

    pod: str
    node: str
    numa_nodes: NumaSet
    reservations: tuple[Reservation, ...]
    allocations: tuple[Allocation, ...]
    until: float
    bound: bool = False
    devices: Devices = ()
    gang: str = ""
    private: bool = False

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
class HeldReservation(Reservation):
    """What is held on one NUMA node for pods of a group that wait. devices: that they ask for."""

    devices: Devices = ()


@dataclass(frozen=True)
class NodeView:
    """Immutable: every change gives a new one, so that what was once scored can be explained from the same values.

    held: by group, what is held for its pods that wait for a node. unheld: this view without it, where something is
    held; None: to be made. counted: of a view before this one. ended: uids of
    reported pods that the API server does not have any more; their room is free already. occupancy: what was reported,
    with the assumed pods in their expected places and what is held for groups, and without those that have ended; made
    of the others where it is not given.
    """

    name: str
    session: str
    version: str
    machine: Machine
    reported: Occupancy = field(default_factory=Occupancy)
    generation: int = 0
    fingerprint: int = 0
    registered: bool = True
    yielded: Yielded = NONE
    report_format: int = REPORT_FORMAT
    assumed: Mapping[str, Assumption] = field(default_factory=dict)
    held: Mapping[str, tuple[HeldReservation, ...]] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    occupancy: Occupancy = UNMADE
    unheld: NodeView | None = field(default=None, repr=False, compare=False)
    counted: Counted | None = field(default=None, repr=False, compare=False)
    memo: dict[Hashable, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What was computed on this view, by whatever it depends on beside the view."""

    def __post_init__(self) -> None:
        if self.occupancy is UNMADE:
            object.__setattr__(self, "occupancy", self._expected())

    def _expected(self) -> Occupancy:
        return _with_held(_with_assumed(_less(self.reported, self.ended), self.assumed.values()), self.held)

    @property
    def bare(self) -> NodeView:
        """As if nothing were held here for groups."""
        if not self.held or self.unheld is not None:
            return self.unheld or self
        keys = (reservation.key for there in self.held.values() for reservation in there)
        occupancy = self.occupancy.changed(dict.fromkeys(keys), checked=False)
        if _with_devices(self.held):
            occupancy = occupancy.with_live(_less_devices(self.reported.live, self.assumed.values()))
        return _carried(self, occupancy, held={})

    @property
    def requested(self) -> CpuAndMemory:
        """Millicores and bytes, by all that is there, what is assumed and held too."""
        rows = self.occupancy.load(self.machine).rows.values()
        return sum(row.cpu for row in rows), sum(row.memory for row in rows)

    def free_pages(self, numa_node: int, size: int) -> int:
        """Bytes in hugepages of this size that are neither requested nor in use."""
        pages = self.machine.node(numa_node).hugepages.get(size, 0)
        requested = self.occupancy.load(self.machine).hugepages.get((numa_node, size), 0)
        return min(pages - requested, self.occupancy.live.free_hugepages.get((numa_node, size), pages))

    def free_devices(self, resource: str) -> dict[int, int]:
        """How many, by the mask of the NUMA nodes that they are near to."""
        devices = self.occupancy.live.devices
        return {mask: free for (name, mask), free in devices.items() if name == resource}

    @cached_property
    def index(self) -> NodeIndex:
        return NodeIndex(self.reported, self.occupancy)

    @property
    def placing(self) -> bool:
        """Whether pods that start there now are placed: elsewhere the node counts as one without an enforcer."""
        return self.registered and not self.yielded.powerless

    @property
    def skewed(self) -> bool:
        """Whether the enforcer speaks another report format, so that its fingerprints can't be compared."""
        return self.report_format != REPORT_FORMAT

    @cached_property
    def table(self) -> Floats | None:
        """The node's numbers for arrays; None where making them raises, so that decide() is asked, its faults
        contained.
        """
        try:
            carried = self.counted.carried if self.counted is not None else table
            return carried(self.machine, self.occupancy)
        except Exception:  # noqa: BLE001 - decide() is asked about it, and other nodes are answered for
            _log.exception("a node's numbers can't be computed", node=self.name)
            return None

    def remember(self, key: Hashable, answer: object) -> None:
        """In `memo`."""
        if len(self.memo) >= REMEMBERED:
            self.memo.clear()
        self.memo[key] = answer

    def applied(self, report: Report) -> NodeView | ReportRefused:
        """With the report in; pods that it shows are assumed no longer."""
        if report.base and report.base != self.generation:
            return ReportRefused.UNKNOWN_BASE
        reported = (self.reported if report.base else self._empty).reported(
            report.reservations,
            report.gone_reservations,
            report.allocations,
            report.gone_allocations,
            report.live,
        )
        if _too_much(reported, self.machine):
            return ReportRefused.TOO_MUCH
        if not self.skewed and reported.fingerprint != report.fingerprint:
            return ReportRefused.FINGERPRINT
        return replace(
            self,
            reported=reported,
            generation=report.generation,
            fingerprint=report.fingerprint,
            registered=self.registered if report.registered is None else report.registered,
            yielded=self.yielded if report.yielded is None else report.yielded,
            assumed={
                pod: left for pod, assumption in self.assumed.items() if (left := assumption.unreported(reported))
            },
            ended=frozenset(pod for pod in self.ended if pod in reported.directory.by_pod),
            occupancy=UNMADE,
            unheld=None,
            counted=None,
        )

    @property
    def _empty(self) -> Occupancy:
        return self.reported.emptied()

    def with_assumptions_of(self, held: NodeView | None) -> NodeView:
        """With what was assumed on the node, and known to have ended, before its enforcer began anew."""
        return (
            self
            if held is None
            else replace(self, assumed=held.assumed, held=held.held, ended=held.ended, occupancy=UNMADE)
        )

    def without_ended(self, pod: str) -> NodeView:
        """The pod has ended, though the enforcer may show it for a while."""
        if pod not in self.index.pods or pod in self.ended:
            return self
        if self.held:
            return self.bare.without_ended(pod).holding(self.held)
        return _carried(self, _less(self.occupancy, (pod,)), ended=self.ended | {pod})

    def not_ended(self, pod: str) -> NodeView:
        """The API server has the pod again."""
        if pod not in self.ended:
            return self
        return replace(self, ended=self.ended - {pod}, occupancy=UNMADE, unheld=None, counted=None)

    def assuming(self, *assumptions: Assumption) -> NodeView:
        """With these too; in place of what was assumed of the same pods.

        The occupancy is carried on, not made anew: in a burst one node has hundreds of assumptions.
        """
        if not assumptions:
            return self
        if self.held:
            return self.bare.assuming(*assumptions).holding(self.held)
        new = {assumption.pod: assumption for assumption in assumptions}
        before = self.without_assumed(*new)
        return _carried(before, _with_assumed(before.occupancy, assumptions), assumed={**before.assumed, **new})

    def confirming(self, assumption: Assumption) -> NodeView:
        """With this in place of what is assumed of the same pod on the same room, so that its numbers are known."""
        unheld = self.unheld.confirming(assumption) if self.unheld is not None else None
        after = replace(self, assumed={**self.assumed, assumption.pod: assumption}, unheld=unheld)
        if "table" in vars(self):
            vars(after)["table"] = self.table
        return after

    def holding(self, held: Mapping[str, tuple[HeldReservation, ...]]) -> NodeView:
        """With this held for groups, in place of what is."""
        if held == self.held:
            return self
        bare = self.bare
        if not any(held.values()):
            return bare
        return _carried(bare, _with_held(bare.occupancy, held), held=held, unheld=bare)

    def without_held(self, groups: Container[str]) -> NodeView:
        """As these groups find it."""
        return self.holding({group: there for group, there in self.held.items() if group not in groups})

    def without_assumed(self, *pods: str) -> NodeView:
        """As if these pods had not been assumed here."""
        gone = [self.assumed[pod] for pod in pods if pod in self.assumed]
        if not gone:
            return self
        if self.held:
            return self.bare.without_assumed(*pods).holding(self.held)
        left = {uid: self.assumed[uid] for uid in self.assumed.keys() - pods}
        if not left and not self.ended:
            return _carried(self, self.reported, assumed=left)
        shown = self.reported
        after = self.occupancy.changed(
            reservations={
                reservation.key: shown.reservations.get(reservation.key)
                for assumption in gone
                for reservation in assumption.reservations
            },
            allocations={
                allocation.container: shown.allocations.get(allocation.container)
                for assumption in gone
                for allocation in assumption.allocations
            },
            checked=False,
        )
        if any(assumption.devices for assumption in gone):
            after = after.with_live(_less_devices(shown.live, left.values()))
        return _carried(self, after, assumed=left)


def _carried(before: NodeView, occupancy: Occupancy, **changed: Any) -> NodeView:
    """With another occupancy, and what else changes with it; as much as is known of the table is carried on."""
    known = vars(before).get("table")
    counted = before.counted if known is None else Counted(known, before.occupancy)
    return replace(before, occupancy=occupancy, counted=counted, **changed)


def _too_much(reported: Occupancy, machine: Machine) -> bool:
    """What no single report is over a bound with, many may be together."""
    sizes = HUGEPAGE_SIZES * len(machine.numa_nodes)
    return (
        len(reported.reservations) > RESERVATIONS
        or len(reported.allocations) > ALLOCATIONS
        or len(reported.live.free_hugepages) > sizes
    )


def _less(occupancy: Occupancy, ended: Collection[str]) -> Occupancy:
    if not ended:
        return occupancy
    reservations = [key for pod in ended for key in occupancy.directory.by_pod.get(pod, ())]
    allocations = [key for key, allocation in occupancy.allocations.items() if allocation.pod in ended]
    return occupancy.changed(dict.fromkeys(reservations), dict.fromkeys(allocations), checked=False)


def _with_assumed(occupancy: Occupancy, assumed: Collection[Assumption]) -> Occupancy:
    """Unchecked: where the enforcer gave an assumed pod's CPUs to another, the nomination will be declined."""
    if not assumed:
        return occupancy
    if any(assumption.devices for assumption in assumed):
        occupancy = occupancy.with_live(_less_devices(occupancy.live, assumed))
    return occupancy.changed(
        reservations={
            reservation.key: reservation for assumption in assumed for reservation in assumption.reservations
        },
        allocations={
            allocation.container: allocation for assumption in assumed for allocation in assumption.allocations
        },
        checked=False,
    )


def _with_held(occupancy: Occupancy, held: Mapping[str, tuple[HeldReservation, ...]]) -> Occupancy:
    new = {reservation.key: reservation for there in held.values() for reservation in there}
    if not new:
        return occupancy
    if devices := _with_devices(held):
        occupancy = occupancy.with_live(occupancy.live.less_devices(devices))
    return occupancy.changed(new, checked=False)


def _with_devices(held: Mapping[str, tuple[HeldReservation, ...]]) -> list[tuple[int, Devices]]:
    """By the mask of a NUMA node, the devices that are held for pods there."""
    return [(each.numa_nodes.mask, each.devices) for there in held.values() for each in there if each.devices]


def _less_devices(live: Live, assumed: Iterable[Assumption]) -> Live:
    return live.less_devices((assumption.numa_nodes.mask, assumption.devices) for assumption in assumed)
