"""What an enforcer says of its node, as the extender takes it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum

from numakin.placement.decide.decide import Reason
from numakin.placement.model.live_usage import NOTHING, Live
from numakin.placement.state.occupancy import Allocation, Reservation
from numakin.placement.state.yielded import Yielded
from numakin.wire.bounds import ALLOCATIONS, HUGEPAGE_SIZES, RESERVATIONS


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
    def size(self) -> int:
        """Bytes of its texts."""
        texts = (self.pod, self.namespace, self.name, self.container, self.event)
        places = (self.numa_nodes, self.cpus, self.mems, self.nominated)
        words = (text for reason in self.reasons for text in (reason.what, reason.number, reason.effect))
        return sum(map(sys.getsizeof, (*texts, *places, *words)))

    @property
    def sentences(self) -> list[str]:
        """The reasons, one sentence each."""
        return [str(reason) for reason in self.reasons]


@dataclass(frozen=True, slots=True)
class Report:
    """One report of an enforcer. base: the generation that it is a difference against; 0: it is everything.

    earlier: decisions that some extender has received before.
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
    yielded: Yielded | None = None


class ReportRefused(Enum):
    """Why a report can't be applied: the enforcer is asked for everything."""

    UNKNOWN_BASE = "it is a difference against a generation that is not held here"
    FINGERPRINT = "its fingerprint differs from what it gives here"
    TOO_MUCH = (
        f"with it the node has over {RESERVATIONS} reservations, {ALLOCATIONS} allocations "
        f"or {HUGEPAGE_SIZES} sizes of hugepages on each NUMA node"
    )
