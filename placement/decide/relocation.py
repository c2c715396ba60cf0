"""A running member's move: decide() is asked as if the member came anew, and its new NUMA nodes were its planned slot
or its new cache domain its former one.

So a move goes nowhere that a newcomer could not, and what does not hold is declined with decide()'s own reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.decide.decide import decide
from placement.decide.decision import Decision, Reason
from placement.decide.request import Kin, Request
from placement.model.cpuset import CpuSet, NumaSet
from placement.model.topology import Machine
from placement.optin.options import Move
from placement.state.occupancy import Allocation, Occupancy, Reservation


@dataclass(frozen=True, slots=True)
class Mover:
    """One reservation and where it shall go. requests: of all its live containers. domain: the cache domain of the NUMA
    node where it is already; empty for a move to another NUMA node.
    """

    target: NumaSet
    requests: tuple[Request, ...]
    kin: Kin
    domain: CpuSet = CpuSet()

    @property
    def where(self) -> str:
        """In words."""
        return f"CPUs {self.domain}" if self.domain else f"NUMA node {self.target}"

    def holds(self, decision: Decision) -> bool:
        """Whether the decision is for where it shall go."""
        there = decision.numa_nodes == self.target and bool(decision.cpus)
        return there and (not self.domain or (decision.cache_domain == self.domain and decision.cpus <= self.domain))


@dataclass(frozen=True, slots=True)
class Moved:
    """occupancy: after all moves. decisions: what each container of the movers gets, in their order."""

    occupancy: Occupancy
    decisions: tuple[tuple[Request, Decision], ...]


def moved(machine: Machine, occupancy: Occupancy, movers: Sequence[Mover]) -> Moved | Reason:
    """All of them at once, so that two may change places; or why that does not hold, and then none moves."""
    asking = [(mover, request) for mover in movers for request in mover.requests]
    now = _without(occupancy, movers)
    decisions = []
    for mover, request in asking:
        decision = decide(machine, now, request, replace(mover.kin, expected=NumaSet(), planned=mover.target))
        if not mover.holds(decision):
            broken = (why.effect for why in decision.reasons if why.what == ("cache" if mover.domain else "plan"))
            return Reason("move", mover.where, next(broken, "does not hold"))
        before = occupancy.allocations[request.container]
        if mover.domain:
            decision = replace(decision, mems=before.mems, memory_policy=None)
        else:
            decision = _with_memory(machine, before, request, decision)
        now = decision.applied(now, request)
        decisions.append((request, decision))
    return Moved(now, tuple(decisions))


def _without(occupancy: Occupancy, movers: Sequence[Mover]) -> Occupancy:
    """As if none of them ran; who changes its cache domain alone keeps its room on the NUMA node."""
    reservations: dict[str, Reservation | None] = {}
    allocations: dict[str, Allocation | None] = {}
    for mover in movers:
        for request in mover.requests:
            key = request.reservation_key
            kept = replace(occupancy.reservations[key], cache_domain=mover.domain) if mover.domain else None
            reservations[key] = kept
            allocations[request.container] = None
    return occupancy.changed(reservations=reservations, allocations=allocations)


def _with_memory(machine: Machine, before: Allocation, request: Request, decision: Decision) -> Decision:
    """The kernel moves the pages that new mems leave out. So they follow only where that was asked for; else a bound
    container keeps its mems and gets those of its new home beside them, where its new pages then come from.
    """
    if request.opt_in.move is Move.CPUS_AND_MEMORY:
        return decision
    if not before.mems or not decision.mems:
        return replace(decision, mems=NumaSet())
    mems = before.mems | decision.mems
    if mems == decision.mems:
        return decision
    reason = Reason("pages", f"NUMA node {before.mems}", "stay there: new ones come from where it runs now")
    if machine.all_mems <= mems:
        mems = NumaSet()
    return replace(decision, mems=mems, reasons=(*decision.reasons, reason))
