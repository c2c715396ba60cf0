"""decide(): where a container goes on one machine, and why. The enforcer calls it to act, the extender to predict.

The order of doubts, each settled before the next is asked:
  0. may it ask for that?   exclusive CPUs beyond its namespace's quota are not considered (`quota`);
  1. does it fit?           CPU, memory, hugepages, exclusive CPUs, with all others' requests kept (`room`);
  2. is it settled already? beside its pod's running containers, at its former reservation, where it was nominated to,
                            where the plan keeps its reservation, in this order while it fits there;
  3. how narrow is it?      a set of NUMA nodes is wider only when the demand is, off memory pressure, not hot, near
                            devices, with CPU for what all there are expected to use;
  4. how near are its kin?  the share of kin weight that would be local, each peer by closeness (`kinship`);
  5. can the rest follow?   room for the expected rest of the group;
  6. how empty is it?       then the fewer reservations, then the lowest id, so that equal inputs give equal answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from numakin.placement.decide import memory
from numakin.placement.decide.asked.pod_budget import BUDGET, Share, share_of, sharers_of, within_budget
from numakin.placement.decide.asked.quota import within_quota
from numakin.placement.decide.asked.whole_pod import whole_reservation
from numakin.placement.decide.choice import Choice, choose, pinned
from numakin.placement.decide.cpus import exclusive
from numakin.placement.decide.cpus.cache_domain import Kept, keep, kin_mask
from numakin.placement.decide.cpus.exclusive import Caches
from numakin.placement.decide.decision import Decision, MemoryPolicy, Reason
from numakin.placement.decide.kin_share import peers_of
from numakin.placement.decide.lending import lenders, without_their_own
from numakin.placement.decide.policies import ADMITS
from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.room import Candidate, Room
from numakin.placement.decide.scoring import SHARES_INSTEAD
from numakin.placement.decide.survey import survey, takeable
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Cpus, Policy, Pool, Scope
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Occupancy, Reservation

__all__ = ["Decision", "Kin", "MemoryPolicy", "Reason", "Request", "decide", "left_open"]


def decide(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> Decision:
    """The one function: same inputs, same answer, in both halves."""
    request, why = within_budget(occupancy, whole_reservation(occupancy, request))
    allowed = within_quota(machine, occupancy, request)
    decision = _decided(machine, occupancy, allowed.request, kin)
    before = (*why, *allowed.reasons, *_shares_as_small(request))
    return replace(decision, reasons=(*before, *decision.reasons)) if before else decision


def _decided(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin, *, may_lend: bool = True) -> Decision:
    if request.opt_in.policy is Policy.NONE:
        return left_open(machine, occupancy, request, (Reason("policy none", "", "CPUs and memory are left open"),))
    if request.opt_in.scope is Scope.CONTAINER and occupancy.members_of(request.pod, but=request.reservation_key):
        kin = replace(kin, expected=NumaSet(), planned=NumaSet())  # they were for the whole pod, which is not together
    room = survey(machine, occupancy, request, kin)
    choice = choose(room, kin)
    if choice.candidate is not None:
        home = choice.candidate.numa_nodes
        cpus = _exclusive_cpus(room, home, kin) if request.wants_exclusive else _pool(room, home)
        cpus = _stable(room, home, cpus) if request.wants_stable else cpus
        if cpus:
            kept = keep(room, home, cpus, kin)
            return _granted(room, choice, choice.candidate, kept)
    if request.wants_exclusive:
        return _shared_instead(room, choice, kin)
    if may_lend and (lent := _by_lending(room, kin)) is not None:
        return lent
    reservation = occupancy.reservations.get(request.reservation_key) if pinned(room) else None
    return left_open(
        machine,
        occupancy,
        request,
        (*choice.reasons, _shortage(room)),
        admitted=choice.admitted,
        reservation=reservation,
    )


def _granted(room: Room, choice: Choice, candidate: Candidate, kept: Kept) -> Decision:
    machine, request = room.machine, room.request
    placed = memory.place(machine, room.occupancy, request, room.load, candidate.numa_nodes, spills=candidate.spills)
    decision = Decision(
        numa_nodes=candidate.numa_nodes,
        cpus=kept.cpus,
        mems=placed.mems,
        exclusive=kept.cpus if request.wants_exclusive else CpuSet(),
        score=candidate.score if choice.admitted else 0.0,
        fits=True,
        reasons=(),
        preferred=choice.preferred,
        admitted=choice.admitted,
        memory_policy=placed.policy,
        parts=room.parts(candidate),
        stable=request.wants_stable,
        reservation_demand=request.reservation_demand,
        cache_domain=kept.domain,
        crowded=candidate.crowded,
        hot=candidate.hot,
        let_out=kept.let_out,
    )
    updates = _updates(room, decision)
    reasons = [*choice.reasons, *kept.reasons, *_own_reasons(room, decision, updates)]
    if decision.stable:
        reasons.append(Reason("stable", f"CPUs {decision.cpus}", "stay its cpuset: none of them becomes exclusive"))
    reasons += _counted_use(room, candidate)
    reasons.append(placed.reason)
    if request.demand.estimated:
        estimated = " and ".join(sorted(request.demand.estimated))
        reasons.append(Reason("estimated", "", f"{estimated} taken from the cgroup's settings"))
    return replace(decision, reasons=tuple(reasons), updates=updates)


def _counted_use(room: Room, candidate: Candidate) -> list[Reason]:
    """How much stays free, and which of request and use decided that."""
    demand, reasons = room.request.reservation_demand, []
    if room.needed.expected > room.needed.cpu:
        asked = f"its workload's pods use that, and ask for {demand.cpu_milli / 1000:g}"
        reasons.append(Reason("counted as", f"{demand.expected_milli / 1000:g} CPUs", asked))
    by_use = ", by what is used" if candidate.unused < candidate.left else ""
    return [*reasons, Reason("room left", f"{candidate.empty:.0%}", f"CPUs there that stay free{by_use}")]


def left_open(
    machine: Machine,
    occupancy: Occupancy,
    request: Request,
    why: tuple[Reason, ...],
    *,
    admitted: bool = True,
    reservation: Reservation | None = None,
) -> Decision:
    """It has no home: only what others have for themselves is left out. reservation: a running pod's, which stays what
    it is.
    """
    cpus = pools.left_open(machine, occupancy, but=occupancy.alone_of(request.container))
    return Decision(
        numa_nodes=reservation.numa_nodes if reservation is not None else machine.cpu_nodes,
        cpus=cpus if cpus != machine.cpus else CpuSet(),
        mems=NumaSet(),
        exclusive=CpuSet(),
        score=0.0,
        fits=False,
        reasons=why,
        preferred=False,
        admitted=admitted,
        parts=reservation.parts if reservation is not None else (),
        reservation_demand=request.reservation_demand,
        cache_domain=reservation.cache_domain if reservation is not None else CpuSet(),
        let_out=reservation.let_out if reservation is not None else NumaSet(),
    )


def _by_lending(room: Room, kin: Kin) -> Decision | None:
    """Where others' exclusive CPUs are more than they asked for; None where that does not help."""
    options = (_lent(room, containers, kin) for containers in lenders(room))
    return next((decision for decision in options if decision.fits), None)


def _lent(room: Room, containers: tuple[str, ...], kin: Kin) -> Decision:
    machine, request = room.machine, room.request
    occupancy = without_their_own(room.occupancy, containers)
    decision = _decided(machine, occupancy, request, kin, may_lend=False)
    after = occupancy.changed(
        reservations={request.reservation_key: decision.reservation(request)},
        allocations={request.container: decision.allocation(request)},
        checked=False,
    )
    effect = f"of {len(containers)} containers were rounded up: they share from now on, as this one needs the rest"
    return replace(
        decision,
        score=SHARES_INSTEAD * decision.score,
        updates=tuple(update for update in pools.due(machine, after) if update[0] != request.container),
        share_again=containers,
        reasons=(Reason("exclusive CPUs", "", effect), *decision.reasons),
    )


def _shared_instead(room: Room, choice: Choice, kin: Kin) -> Decision:
    """A container that can't have CPUs of its own shares near its kin, and is asked about again when room comes free.
    A policy that may refuse does not admit it.
    """
    request = room.request
    shared = replace(request, opt_in=replace(request.opt_in, cpus=Cpus.SHARED, pool=Pool.SHARED))
    decision = _decided(room.machine, room.occupancy, shared, kin)
    admitted = choice.admitted and decision.admitted and ADMITS[request.opt_in.policy](False)
    return replace(
        decision,
        preferred=choice.preferred,
        admitted=admitted,
        score=SHARES_INSTEAD * decision.score if admitted else 0.0,
        shares_instead=True,
        reasons=(_none_of_its_own(room), *decision.reasons),
    )


def _none_of_its_own(room: Room) -> Reason:
    assert room.headroom.own is not None
    wanted, headroom = room.needed.own, room.headroom
    spared = sum(room.headroom.own[node] for node in room.usable)
    free = sum(headroom.free[node].bit_count() for node in room.usable)
    unrequested = sum(max(0, headroom.cpu[node]) for node in room.usable) // 1000
    kept = ", the last shared one of a pool is kept" if spared < wanted <= min(free, unrequested) else ""
    if spared >= wanted and room.needed.cpu > 1000 * wanted:
        kept = f", and its pod needs {room.needed.cpu / 1000:g} with them"
    if room.request.opt_in.cpus is Cpus.EXCLUSIVE_CORES:
        text = f"{spared} can be spared in whole cores of {free} free ones{kept}"
    else:
        text = f"{spared} can be spared of {free} free ones{kept}"
    return Reason("exclusive CPUs", str(wanted), f"{text}: it shares instead")


def _shares_as_small(request: Request) -> tuple[Reason, ...]:
    if not request.opt_in.cpus.own or request.wants_exclusive:
        return ()
    key = f"cpus.numakin.io/container.{request.name}"
    return (Reason("exclusive CPUs", "", f"it asks for less than one, and shares: {key} would give it one"),)


def _shortage(room: Room) -> Reason:
    demand = room.request.reservation_demand
    requested = f"{demand.cpu_milli / 1000:g} CPUs and {demand.memory >> 20} MiB"
    return Reason("fits nowhere", requested, f"left open over all {len(room.machine.cpu_nodes)} NUMA nodes")


def _pool(room: Room, numa_nodes: NumaSet) -> CpuSet:
    if room.request.pool is not Pool.SHARED:
        return pools.pool_of(room.machine, room.occupancy, room.request.pool, numa_nodes)
    mask = 0
    for numa_node in numa_nodes:
        mask |= room.headroom.free[numa_node]
    return CpuSet(mask)


def _stable(room: Room, home: NumaSet, pool: CpuSet) -> CpuSet:
    """What it has already, else the stable part of its home's pool where that holds it and those that are in it by
    their requests, else the whole pool as it is now.
    """
    occupancy, request = room.occupancy, room.request
    held = occupancy.allocations.get(request.container)
    if held is not None and held.stable and held.cpus <= pool:
        return held.cpus
    part = pools.stable_part(room.machine, occupancy, home)
    asked = request.reservation_demand.cpu_milli
    if occupancy.directory.stable:
        keys = {a.reservation for a in occupancy.allocations.values() if a.stable and not a.cpus.isdisjoint(part)}
        asked += sum(occupancy.reservations[key].demand.cpu_milli for key in keys - {request.reservation_key})
    return part if part and asked <= 1000 * len(part) else pool


def _exclusive_cpus(room: Room, numa_nodes: NumaSet, kin: Kin) -> CpuSet:
    """What it has already while that will do, else the best there is; CPUs that others claim come last."""
    machine, request = room.machine, room.request
    whole_cores = request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    share, wanted = share_of(room.occupancy, request), room.needed.own
    if share.common:
        return _of_budget(room, numa_nodes, share, kin)
    own = room.occupancy.alone_of(request.container)
    stays = own and own <= machine.cpus_of(numa_nodes) - room.occupancy.reserved
    if stays and exclusive.suits(machine, own, wanted, whole_cores=whole_cores):
        return own
    return _taken(room, numa_nodes, wanted, kin, own=own if stays else CpuSet())


def _of_budget(room: Room, numa_nodes: NumaSet, share: Share, kin: Kin) -> CpuSet:
    """A slice of the CPUs that the pod's containers share by now; or these, as many more or fewer as its budget says.
    Empty where there are not as many more: on fewer than the pod asks for its containers would be slower than in the
    shared pool.
    """
    if not share.cut and share.grown >= 0:
        more = _taken(room, numa_nodes, share.grown, kin, beside=share.common)
        return share.common | more if more or not share.grown else CpuSet()
    wanted = share.cut or len(share.common) + share.grown
    whole_cores = room.request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    nodes = {node: room.machine.node(node).cpus.mask & share.common.mask for node in numa_nodes}
    here = {node: (mask, mask.bit_count()) for node, mask in nodes.items() if mask}
    return exclusive.pick(room.machine, here, wanted, _caches(room, kin), whole_cores=whole_cores) or share.common


def _taken(
    room: Room, numa_nodes: NumaSet, wanted: int, kin: Kin, *, own: CpuSet = CpuSet(), beside: CpuSet = CpuSet()
) -> CpuSet:
    """So many CPUs; empty where there are not as many. own: those that it has and may keep. beside: those that it has,
    of which none is meant.
    """
    if not wanted:
        return CpuSet()
    machine, request = room.machine, room.request
    whole_cores = request.opt_in.cpus is Cpus.EXCLUSIVE_CORES
    free = {numa_node: room.headroom.free[numa_node] for numa_node in numa_nodes}
    spare = _beside(takeable(machine, room.occupancy, request, free, room.headroom.cpu, wanted=wanted), beside)
    claimed, rules = pools.claimed(machine, room.occupancy), room.occupancy.rules
    unclaimed = {numa_node: (mask & ~claimed, most) for numa_node, (mask, most) in spare.items()}
    pick = partial(
        exclusive.pick,
        machine,
        wanted=wanted,
        caches=_caches(room, kin),
        whole_cores=whole_cores,
        evenly=rules.distribute_cpus_across_numa,
        spread=rules.distribute_cpus_across_cores,
    )
    if len(own) > wanted and (fewer := pick(room=_within(spare, own))):
        return fewer
    if own and len(own) < wanted and (more := pick(room=_beside(unclaimed, own), wanted=wanted - len(own))):
        return own | more
    return pick(room=unclaimed) or (pick(room=spare) if claimed else CpuSet())


def _within(spare: Mapping[int, tuple[int, int]], own: CpuSet) -> dict[int, tuple[int, int]]:
    return {numa_node: (mask & own.mask, most) for numa_node, (mask, most) in spare.items()}


def _beside(spare: Mapping[int, tuple[int, int]], own: CpuSet) -> dict[int, tuple[int, int]]:
    """What may be taken beside CPUs that count as free."""
    return {
        numa_node: (mask & ~own.mask, most - (mask & own.mask).bit_count()) for numa_node, (mask, most) in spare.items()
    }


def _caches(room: Room, kin: Kin) -> Caches:
    occupancy = room.occupancy
    owned = [
        (mask, weight)
        for reservation, weight in peers_of(occupancy, room.request, kin)
        if (mask := kin_mask(occupancy, reservation))
    ]

    def weight_of(cache: int) -> float:
        return sum(weight * (mask & cache).bit_count() / mask.bit_count() for mask, weight in owned)

    def asked(cache: int) -> float:
        return sum(milli for domain, milli in occupancy.directory.within.items() if domain & cache) / 1000

    return Caches(weight_of, asked)


def _updates(room: Room, decision: Decision) -> tuple[tuple[str, CpuSet], ...]:
    """Whose CPUs change with this decision: looked for only where exclusive CPUs or the reclaimed pool are in play, or
    where the pod's other containers get another home.
    """
    occupancy, request = room.occupancy, room.request
    mine = occupancy.allocations.get(request.container)
    before = mine.exclusive if mine is not None else CpuSet()
    directory = occupancy.directory
    former = occupancy.reservations.get(request.reservation_key)
    stays = former is None or former.numa_nodes == decision.numa_nodes
    if stays and decision.exclusive == before and not directory.special and not directory.within:
        return ()
    common = _common_after(room, decision)
    after = occupancy.changed(
        reservations={request.reservation_key: decision.reservation(request)},
        allocations={
            request.container: decision.allocation(request),
            **{key: occupancy.allocations[key].resized(cpus) for key, cpus in common},
        },
        checked=False,
    )
    return *common, *(update for update in pools.due(room.machine, after) if update[0] != request.container)


def _common_after(room: Room, decision: Decision) -> tuple[tuple[str, CpuSet], ...]:
    """What the pod's containers without a slice of its budget have from now on, where that is not what they have."""
    occupancy, request = room.occupancy, room.request
    if request.budget is None or not decision.exclusive:
        return ()
    share = share_of(occupancy, request)
    left = share.common - decision.exclusive or share.common if share.cut else decision.exclusive
    if not share.common or left == share.common or (request.budget.slice_of(request.name) and not share.cut):
        return ()
    return tuple((key, left) for key in sharers_of(occupancy, request))


def _own_reasons(room: Room, decision: Decision, updates: tuple[tuple[str, CpuSet], ...]) -> list[Reason]:
    if not decision.exclusive:
        return []
    budget = room.request.budget
    shares = budget is not None and not budget.slice_of(room.request.name)
    whom = "its pod's containers alone" if shares else "nobody"
    effect = f"CPUs {decision.exclusive} are shared with {whom}"
    moved = f", {len(updates)} containers leave them" if updates else ""
    reasons = [Reason("exclusive CPUs", str(len(decision.exclusive)), effect + moved)]
    if budget is not None:
        part = "it shares what its containers with whole CPUs of their own leave" if shares else "a slice of them"
        reasons.insert(0, Reason(BUDGET, f"{budget.cpus} CPUs", part))
    return reasons
