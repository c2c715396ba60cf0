"""A running member's move: decide() is asked as if the member came anew and its new NUMA nodes were its planned slot.

So a move goes nowhere that a newcomer could not, and what does not hold is declined with decide()'s own reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.decide.decide import decide
from placement.decide.decision import Decision, Reason
from placement.decide.request import Kin, Request
from placement.model.cpuset import NumaSet
from placement.model.topology import Machine
from placement.optin.options import Move
from placement.state.occupancy import Allocation, Occupancy, Reservation


@dataclass(frozen=True, slots=True)
class Mover:
    """One reservation and where it shall go. requests: of all its live containers."""

    target: NumaSet
    requests: tuple[Request, ...]
    kin: Kin


@dataclass(frozen=True, slots=True)
class Moved:
    """occupancy: after all moves. decisions: what each container of the movers gets, in their order."""

    occupancy: Occupancy
    decisions: tuple[tuple[Request, Decision], ...]


def moved(machine: Machine, occupancy: Occupancy, movers: Sequence[Mover]) -> Moved | Reason:
    """All of them at once, so that two may change places; or why that does not hold, and then none moves."""
    asking = [(mover, request) for mover in movers for request in mover.requests]
    now = _without(occupancy, [request for _, request in asking])
    decisions = []
    for mover, request in asking:
        decision = decide(machine, now, request, replace(mover.kin, expected=NumaSet(), planned=mover.target))
        if decision.numa_nodes != mover.target or not decision.cpus:
            broken = (why.effect for why in decision.reasons if why.what == "plan")
            return Reason("move", f"NUMA node {mover.target}", next(broken, "does not hold"))
        decision = _with_memory(machine, occupancy.allocations[request.container], request, decision)
        now = decision.applied(now, request)
        decisions.append((request, decision))
    return Moved(now, tuple(decisions))


def _without(occupancy: Occupancy, requests: Sequence[Request]) -> Occupancy:
    reservations: dict[str, Reservation | None] = dict.fromkeys(request.reservation_key for request in requests)
    allocations: dict[str, Allocation | None] = dict.fromkeys(request.container for request in requests)
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
