"""The whole story of a decision: its reasons, then every NUMA node that was weighed, with its numbers.

A decision's own reasons fit an Event; this is what `explain` prints. It costs a second look at the machine, so it is
never made on the way to a container.
"""

from __future__ import annotations

from numakin.placement.decide.decide import decide
from numakin.placement.decide.decision import Decision, Reason
from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.room import Candidate, Room
from numakin.placement.decide.survey import survey
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Policy
from numakin.placement.state.occupancy import Occupancy


def explain(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> tuple[Decision, tuple[Reason, ...]]:
    """The decision, and everything that was considered: what the decision says, then NUMA node by NUMA node."""
    decision = decide(machine, occupancy, request, kin)
    if request.opt_in.policy is Policy.NONE:
        return decision, decision.reasons
    room = survey(machine, occupancy, request, kin)
    rows = [_row(room, cpu_node) for cpu_node in machine.cpu_nodes]
    if len(decision.numa_nodes) > 1 and decision.fits:
        rows.append(_weighed(room.weigh(decision.numa_nodes.mask)))
    return decision, (*decision.reasons, *rows)


def _row(room: Room, numa_node: int) -> Reason:
    if numa_node not in room.usable:
        return Reason(f"NUMA node {numa_node}", "0.00", "no CPU there may be used: reserved, or kept for one alone")
    return _weighed(room.weigh(1 << numa_node))


def _weighed(candidate: Candidate) -> Reason:
    terms = f"kin {candidate.kin:.2f}, room {candidate.room:.2f}, empty {candidate.empty:.2f}"
    notes = [terms, _free(candidate)]
    if candidate.short:
        notes.append(f"short of {candidate.short}")
    if candidate.misses:
        notes.append(f"devices elsewhere: {candidate.misses}")
    if candidate.spills:
        notes.append("memory on a lower tier too")
    if candidate.pressed:
        notes.append("under memory pressure")
    if candidate.hot:
        notes.append("hot")
    return Reason(f"NUMA node {candidate.numa_nodes}", f"{candidate.score:.2f}", ", ".join(notes))


def _free(candidate: Candidate) -> str:
    """By requests, or by what is used where that is more."""
    free, by = candidate.spare, " by what is used" if candidate.unused < candidate.left else ""
    return f"{free / 1000:g} CPUs stay free{by}" if free >= 0 else f"no CPU stays free{by}"
