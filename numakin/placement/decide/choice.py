"""Which set of NUMA nodes it is: what is settled already, what was nominated, what is planned, else the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from numakin.placement.decide import candidates, hints
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.policies import ADMITS
from numakin.placement.decide.request import Kin
from numakin.placement.decide.room import Candidate, Room
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.optin.options import Policy, Scope

NOMINATED = "nominated to the scheduler"


@dataclass(frozen=True, slots=True)
class Choice:
    """candidate: None when nothing fits. preferred, admitted: as Decision has them."""

    candidate: Candidate | None
    preferred: bool
    admitted: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """What is settled before anything is weighed. final: the pod runs, and stays at the candidate, or is left open
    where that is None. Else the search is free.
    """

    candidate: Candidate | None
    final: bool
    reasons: tuple[Reason, ...] = ()


def choose(room: Room, kin: Kin) -> Choice:
    """The set, what the topology manager would say of the request, and why."""
    settled = _settled(room)
    candidate, reasons = settled.candidate, [*settled.reasons]
    if not settled.final:
        candidate, more = _nominated_or_best(room, kin, narrowest(room))
        reasons += more
    if candidate is None or not candidate.fits:
        return _judged(room, None, reasons)
    return _judged(room, candidate, [*reasons, *_remarks(room, candidate)])


def pinned(room: Room) -> bool:
    """Whether a live container of the same reservation is on CPUs that we gave it."""
    occupancy = room.occupancy
    containers = occupancy.directory.by_reservation.get(room.request.reservation_key, ())
    return any(occupancy.allocations[container].placed for container in containers)


def _settled(room: Room) -> Settled:
    """Where its pod is; a reservation over the whole machine settles nothing, it was left open."""
    machine = room.machine
    reservation = room.occupancy.reservations.get(room.request.reservation_key)
    former = reservation.numa_nodes & machine.cpu_nodes if reservation is not None else NumaSet()
    live = pinned(room)
    if not former or (not live and former == machine.cpu_nodes and len(former) > 1):
        return Settled(None, final=live)
    there = room.weigh(former.mask) if former <= NumaSet.of(room.usable) else None
    if there is not None and there.fits and (live or not there.pressed):
        return Settled(there, True, (Reason("its pod is there", "", f"NUMA node {former}"),))
    if not live:
        short = there.short if there is not None else "CPUs"
        reason = Reason("its former place", f"NUMA node {former}", f"short of {short or 'free memory'}")
        return Settled(None, False, (reason,))
    wider = _grown(room, former)
    text = f"widened to NUMA node {wider.numa_nodes}" if wider is not None else "left open"
    return Settled(wider, True, (Reason("its pod is there, but full", f"NUMA node {former}", text),))


def _grown(room: Room, former: NumaSet) -> Candidate | None:
    """The running pod's NUMA nodes and as many of the nearest as it takes."""
    mask = former.mask
    for numa_node in room.machine.outward[former.lowest]:
        if numa_node in room.usable:
            mask |= 1 << numa_node
            if former <= NumaSet.of(room.usable) and (wider := room.weigh(mask)).fits:
                return wider
    return None


def _nominated_or_best(room: Room, kin: Kin, best: Candidate | None) -> tuple[Candidate | None, list[Reason]]:
    """The nominated or the planned slot while it will do, else the best."""
    reasons: list[Reason] = []
    for numa_nodes, source, broken in (
        (kin.expected, NOMINATED, "nomination"),
        (kin.planned, "planned", "plan"),
    ):
        if not numa_nodes:
            continue
        offered = room.weigh(numa_nodes.mask) if numa_nodes <= NumaSet.of(room.usable) else None
        short = _short(room, offered, best, nominated=source == NOMINATED)
        if offered is not None and not short:
            return offered, [*reasons, Reason(source, "", f"NUMA node {numa_nodes}")]
        reasons.append(Reason(broken, f"NUMA node {numa_nodes}", f"does not hold: short of {short}"))
    if best is None:
        return None, reasons
    if best.kin > 0:
        return best, [*reasons, Reason("its kin are near", f"{best.kin:.0%}", f"NUMA node {best.numa_nodes}")]
    return best, [*reasons, Reason("no kin here", "", f"the emptiest that fits is NUMA node {best.numa_nodes}")]


def _short(room: Room, offered: Candidate | None, best: Candidate | None, *, nominated: bool) -> str:
    """What the offer lacks beside the best; empty when it will do. The extender that made it did not know of devices.
    What was nominated holds where it has become hot since; what was planned does not.
    """
    if offered is None or best is None:
        return offered.short if offered is not None else "usable CPUs"
    if not offered.fits:
        return offered.short
    if offered.pressed and not best.pressed:
        return "memory that is not waited for"
    if offered.hot and not best.hot and not nominated:
        return "CPUs that are not all in use"
    if offered.misses > best.misses:
        return "devices"
    if offered.crowded and not best.crowded and offered.spills == best.spills:
        return "CPU, by what is used there"
    opt_in = room.request.opt_in
    # What was nominated to a pod that no NUMA node holds is for all of its containers, which are placed one by one.
    strict = opt_in.policy is not Policy.BEST_EFFORT or opt_in.scope is Scope.CONTAINER
    return "alignment" if strict and len(offered.numa_nodes) > len(best.numa_nodes) else ""


def narrowest(room: Room) -> Candidate | None:
    """The best of the narrowest sets on which the request fits, where the operator wants that of those on the fewest
    sockets; None when it fits nowhere.
    """
    best = _narrowest(room)
    if best is None or best.sockets < 2 or not room.occupancy.rules.align_by_socket:
        return best
    share = room.shares()
    groups = [
        [node for node in room.usable if node in group]
        for group in candidates.on_few_sockets(room.machine, _least(room))
    ]
    for width in range(len(best.numa_nodes), len(room.usable) + 1):
        masks = {mask for group in groups for mask in candidates.of_width(room.machine, group, width, share)}
        aligned = _fitting_best(room, sorted(masks))
        if aligned is not None:
            return aligned
    return best


def _least(room: Room) -> int:
    """NUMA nodes that the CPUs and the memory would need on the empty machine; 0: it has too little."""
    return hints.narrowest_width(room.providers()[0], [node.id for node in room.machine.numa_nodes])


def _narrowest(room: Room) -> Candidate | None:
    """The best of the narrowest sets on which the request fits, however many sockets that takes.

    What each resource by itself needs is the least width, and nearly always enough. Beyond it, sets that `candidates`
    grows on large machines only gain with width, so that theirs is found by halves.
    """
    most, least = len(room.usable), room.least_width()
    if least == 1 and (best := _single(room)) is not None:
        return best
    if not room.fits_at_all():
        return None
    share, tried = room.shares(), max(candidates.SMALL, least)
    for width in range(max(2, least), min(most, tried) + 1):
        best = _best(room, width, share)
        if best is not None:
            return best
    fitting, width = None, tried + 1
    while width <= most:
        middle = (width + most) // 2
        best = _best(room, middle, share)
        if best is not None:
            fitting, most = best, middle - 1
        else:
            width = middle + 1
    return fitting


def _single(room: Room) -> Candidate | None:
    """The best single NUMA node on which the request fits. They are weighed by falling kin, and no further where what
    is left can't come before the best so far: on large machines most have less kin than the first that will do.
    """
    closest, kin = room.occupancy.rules.prefer_closest_numa_nodes, room.group.kin
    best: Candidate | None = None
    for numa_node in sorted(room.usable, key=kin.__getitem__, reverse=True):
        if best is not None and best.flawless and round(kin[numa_node], 9) < round(best.kin, 9):
            break
        if room.has_cpu(1 << numa_node) and (candidate := room.weigh(1 << numa_node)).fits:
            best = candidate if best is None else min(best, candidate, key=lambda each: each.rank(closest=closest))
    return best


def _best(room: Room, width: int, share: Mapping[int, float]) -> Candidate | None:
    """Of the sets of one width on which the request fits."""
    return _fitting_best(room, candidates.of_width(room.machine, room.usable, width, share))


def _fitting_best(room: Room, sets: Iterable[int]) -> Candidate | None:
    """sets: masks."""
    closest = room.occupancy.rules.prefer_closest_numa_nodes
    fitting = [candidate for mask in sets if room.has_cpu(mask) and (candidate := room.weigh(mask)).fits]
    return min(fitting, key=lambda candidate: candidate.rank(closest=closest), default=None)


def _judged(room: Room, candidate: Candidate | None, reasons: list[Reason]) -> Choice:
    policy = room.request.opt_in.policy
    width = len(candidate.numa_nodes) if candidate is not None else 0
    if candidate is not None and width == 1 and not candidate.misses and not candidate.spills:
        preferred = True
    else:
        nodes = [node.id for node in room.machine.numa_nodes]
        preferred = hints.preferred(
            room.providers(),
            nodes,
            single=policy is Policy.SINGLE_NUMA_NODE,
            sockets=partial(candidates.on_few_sockets, room.machine) if room.occupancy.rules.align_by_socket else None,
        )
    preferred = preferred and (width <= 1 or policy is not Policy.SINGLE_NUMA_NODE)
    admitted = ADMITS[policy](preferred)
    if not admitted:
        reasons = [*reasons, Reason(f"policy {policy}", "", "would not admit this: no preferred set of NUMA nodes")]
    return Choice(candidate, preferred, admitted, tuple(reasons))


def _remarks(room: Room, chosen: Candidate) -> list[Reason]:
    """What was better and could not be had, and what is amiss with what was chosen."""
    remarks = []
    if len(room.group.kin) > 1:
        nearest = max(room.group.kin, key=lambda peer: (round(room.group.kin[peer], 9), -peer))
        if round(room.group.kin[nearest], 9) > round(chosen.kin, 9) and nearest not in chosen.numa_nodes:
            number = f"NUMA node {nearest}, {room.group.kin[nearest]:.0%}"
            remarks.append(Reason("nearer to its kin", number, _why_not(room, nearest)))
    if len(chosen.numa_nodes) > 1:
        remarks.append(Reason("wide", f"{len(chosen.numa_nodes)} NUMA nodes", "none of fewer has the room"))
    if room.request.devices and not chosen.misses:
        remarks.append(Reason("devices", str(len(room.request.devices)), "are near"))
    if chosen.misses:
        remarks.append(Reason("devices", str(chosen.misses), "are near none of these NUMA nodes"))
    if chosen.spills:
        remarks.append(Reason("memory", "", "does not fit beside the CPUs, the rest is on a lower tier"))
    if chosen.pressed:
        remarks.append(Reason("memory pressure", "", "there, and nothing better fits"))
    if chosen.crowded:
        remarks.append(Reason("expected use", f"{-chosen.unused / 1000:g} CPUs", "more than there are, everywhere"))
    if chosen.hot:
        remarks.append(Reason("hot", f"NUMA node {chosen.numa_nodes}", "its CPUs are in use, and nothing better fits"))
    return remarks


def _why_not(room: Room, numa_node: int) -> str:
    """What speaks against it."""
    if numa_node not in room.usable:
        return "short of CPUs that it may use"
    there = room.weigh(1 << numa_node)
    if there.short:
        return f"short of {there.short}"
    if there.hot:
        return "hot: nearly all of its CPUs are in use while others idle"
    return f"{-there.unused / 1000:g} CPUs more would be used than there are" if there.crowded else "not taken"
