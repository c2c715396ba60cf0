"""A running member's move: decide() is asked as if the member came anew and its new NUMA nodes were its planned seat.

So a move goes nowhere that a newcomer could not, and what does not hold is declined with decide()'s own reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.cpuset import NumaSet
from placement.decide import decide
from placement.decision import Decision, Reason
from placement.occupancy import Holding, Occupancy, Seat
from placement.request import Kin, Request
from placement.topology import Machine
from placement.wishes import Move


@dataclass(frozen=True, slots=True)
class Mover:
    """One seat and where it shall go. requests: of all its live containers."""

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
        decision = _with_memory(machine, occupancy.holdings[request.container], request, decision)
        now = decision.applied(now, request)
        decisions.append((request, decision))
    return Moved(now, tuple(decisions))


def _without(occupancy: Occupancy, requests: Sequence[Request]) -> Occupancy:
    seats: dict[str, Seat | None] = dict.fromkeys(one.seat_key for one in requests)
    holdings: dict[str, Holding | None] = dict.fromkeys(one.container for one in requests)
    return occupancy.changed(seats=seats, holdings=holdings)


def _with_memory(machine: Machine, before: Holding, request: Request, decision: Decision) -> Decision:
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
    if mems == machine.mems:
        mems = NumaSet()
    return replace(decision, mems=mems, reasons=(*decision.reasons, reason))
