"""A running member's move: decide() is asked as if the member came anew, and its new NUMA nodes were its planned slot
or its new cache domain its former one.

So a move goes nowhere that a newcomer could not, and what does not hold is declined with decide()'s own reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from numakin.placement.decide.decide import decide
from numakin.placement.decide.decision import Decision, Reason
from numakin.placement.decide.request import Kin, Request
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Move
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation

MOST_MOVED = 256 << 20
"""Bytes that are moved for a container that runs already and is bound; chosen, not measured. The kernel moves them
before the write returns, and a runtime creates and stops no container meanwhile.
"""

MOST_FOLLOWING = 16 << 30
"""Likewise where the pod says that its pages may follow its CPUs; of all who move in one step together."""

PagesOf: TypeAlias = Callable[[str], Mapping[int, int]]
"""By a container's id: bytes that it has on each NUMA node, nothing where that is not known."""


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
        """Whether the decision is for where it shall go, at no other's expense."""
        there = decision.numa_nodes == self.target and decision.fits and not decision.share_again
        return there and (not self.domain or (decision.cache_domain == self.domain and decision.cpus <= self.domain))


@dataclass(frozen=True, slots=True)
class Moved:
    """occupancy: after all moves. decisions: what each container of the movers gets, in their order."""

    occupancy: Occupancy
    decisions: tuple[tuple[Request, Decision], ...]


def moved(
    machine: Machine, occupancy: Occupancy, movers: Sequence[Mover], memory: PagesOf = lambda _container: {}
) -> Moved | Reason:
    """All of them at once, so that two may change places; or why that does not hold, and then none moves. Nobody loses
    CPUs of its own: its namespace may not have as many any more, and what runs keeps them.
    """
    asking = [(mover, request) for mover in movers for request in mover.requests]
    now, may_follow = _without(occupancy, movers), MOST_FOLLOWING
    decisions = []
    for mover, request in asking:
        decision = decide(machine, now, request, replace(mover.kin, expected=NumaSet(), planned=mover.target))
        if not mover.holds(decision):
            broken = (why.effect for why in decision.reasons if why.what == ("cache" if mover.domain else "plan"))
            return Reason("move", mover.where, next(broken, "does not hold"))
        before = occupancy.allocations[request.container]
        if _loses_its_own(before, decision):
            return Reason("move", mover.where, "it has CPUs of its own, and would have none there")
        if mover.domain:
            decision = replace(decision, mems=before.mems, memory_policy=None)
        else:
            following = _following(request, decision, memory)
            decision = _with_memory(machine, before, request, decision, follows=following <= may_follow)
            may_follow -= following if following <= may_follow else 0
        now = decision.applied(now, request)
        decisions.append((request, decision))
    return Moved(now, tuple(decisions))


def better(
    machine: Machine,
    occupancy: Occupancy,
    requests: Sequence[Request],
    kin: Kin,
    memory: PagesOf,
) -> Moved | None:
    """A running member as it would be placed if it came now, where that is better: it has no home, or none of the CPUs
    of its own that it asked for, or is on more NUMA nodes than it would be. None where it is not, or would take CPUs of
    its own from a container that has some.

    requests: of all its live containers. Who has a home stays on its NUMA nodes: its memory is there.
    """
    home = occupancy.reservations[requests[0].reservation_key].numa_nodes
    left_open = any(occupancy.allocations[request.container].open for request in requests)
    planned = kin.planned if left_open else home if len(home) == 1 else NumaSet()
    known = replace(kin, expected=NumaSet(), planned=planned)
    now = occupancy.changed(
        reservations={request.reservation_key: None for request in requests},
        allocations={request.container: None for request in requests},
    )
    decisions = []
    for request in requests:
        held = occupancy.allocations[request.container]
        decision = decide(machine, now, request, known)
        if _loses_its_own(held, decision) or not (left_open or decision.numa_nodes <= home):
            return None
        decision = _with_memory(machine, held, request, decision)
        decision = beside_its_pages(request, decision, memory)
        now = decision.applied(now, request)
        decisions.append((request, decision))
    was, becomes = (_faults(state, requests) for state in (occupancy, now))
    return Moved(now, tuple(decisions)) if becomes < was else None


def beside_its_pages(request: Request, decision: Decision, memory: PagesOf) -> Decision:
    """A decision on a container, left open where it would have the kernel move more than a little of what that has by
    now.
    """
    if not decision.mems:
        return decision
    elsewhere = _elsewhere(request, decision, memory)
    follow = request.opt_in.move is Move.CPUS_AND_MEMORY
    if elsewhere <= (MOST_FOLLOWING if follow else MOST_MOVED):
        return decision
    effect = f"are not on NUMA node {decision.mems}, and stay: left open"
    reason = Reason("pages", f"{elsewhere >> 20} MiB", effect)
    return replace(decision, mems=NumaSet(), reasons=(*decision.reasons, reason))


def second_best(machine: Machine, occupancy: Occupancy, request: Request) -> bool:
    """Whether a running container may be better off once there is more room."""
    held = occupancy.allocations[request.container]
    if held.open or (request.wants_exclusive and not held.exclusive):
        return True
    reservation = occupancy.reservations[request.reservation_key]
    wide = len(reservation.numa_nodes) > 1 and not reservation.let_out
    return wide and request.reservation_demand.cpu_milli <= 1000 * max(machine.cpu_counts.values())


def _faults(occupancy: Occupancy, requests: Sequence[Request]) -> tuple[int, int, int]:
    """The fewer, the better: containers without a home, without CPUs of their own, NUMA nodes."""
    held = [(request, occupancy.allocations[request.container]) for request in requests]
    return (
        sum(allocation.open for _, allocation in held),
        sum(request.wants_exclusive and not allocation.exclusive for request, allocation in held),
        len(occupancy.reservations[requests[0].reservation_key].numa_nodes),
    )


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


def _loses_its_own(before: Allocation, decision: Decision) -> bool:
    return bool(before.exclusive) and not decision.exclusive


def _elsewhere(request: Request, decision: Decision, memory: PagesOf) -> int:
    """Bytes of the container that are on none of the NUMA nodes which it would be bound to."""
    there = memory(request.container)
    return sum(amount for numa_node, amount in there.items() if numa_node not in decision.mems)


def _following(request: Request, decision: Decision, memory: PagesOf) -> int:
    """Bytes that the kernel would move along with a mover's CPUs."""
    follows = request.opt_in.move is Move.CPUS_AND_MEMORY and bool(decision.mems)
    return _elsewhere(request, decision, memory) if follows else 0


def _with_memory(
    machine: Machine, before: Allocation, request: Request, decision: Decision, *, follows: bool = True
) -> Decision:
    """The kernel moves the pages that new mems leave out. So they follow only where that was asked for, and is not too
    much (follows); else a bound container keeps its mems and gets those of its new home beside them, where its new
    pages then come from.
    """
    if follows and request.opt_in.move is Move.CPUS_AND_MEMORY:
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
