"""Which of a NUMA node's cache domains a member is kept within, where it asks for that.

The one where it is already, if it runs; else of those that hold its request, and are not hot, the one with most of its
kin, then the one with most room, so that what is to come of its group fits beside it and other groups are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from numakin.placement.decide.choice import pinned
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.kin_share import peers_of
from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.room import Room
from numakin.placement.decide.survey import survey
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.rules import Rules
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Pool, Span
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.placement.state.pools import is_hot, kept_within, pool_of


@dataclass(frozen=True, slots=True)
class Kept:
    """domain: empty where it is kept within none. cpus: those that it gets now, of its home's pool or, where its pod is
    let out, of those of `let_out`.
    """

    domain: CpuSet
    cpus: CpuSet
    reasons: tuple[Reason, ...] = ()
    let_out: NumaSet = NumaSet()


def keeps_to_cache(request: Request, rules: Rules) -> bool:
    """Whether it asks, or by the operator's rules is, to be kept within a cache domain."""
    if request.wants_exclusive or request.wants_stable or request.pool is not Pool.SHARED:
        return False
    return request.opt_in.span is Span.CACHE or (request.opt_in.span is None and rules.within_caches)


def keep(room: Room, home: NumaSet, pool: CpuSet, kin: Kin) -> Kept:
    """pool: the CPUs of its home's pool."""
    request, former = room.request, _former(room, home)
    asks = keeps_to_cache(request, room.occupancy.rules)
    if out := _out(room, home):
        return _outside(room, former, pool, out)
    if not (asks or former):
        return Kept(CpuSet(), pool)
    if pinned(room):  # what the first of the pod's containers was given is for all of them
        shares = bool(former) and not request.wants_exclusive
        return _within(room, pool, former, "its pod is there") if shares else Kept(former, pool)
    return _chosen(room, home, pool, kin) if asks else Kept(CpuSet(), pool)


def _chosen(room: Room, home: NumaSet, pool: CpuSet, kin: Kin) -> Kept:
    """As if it came anew, though it may have been within one before."""
    former = _former(room, home)
    domains = room.machine.cache_domains[home.lowest] if len(home) == 1 else ()
    if not domains:
        return Kept(CpuSet(), pool, (Reason("cache", "", f"NUMA node {home} has no cache domains to choose from"),))
    mine = room.request.reservation_demand.cpu_milli
    spare = {domain: 1000 * (pool.mask & domain).bit_count() - _others(room, domain) for domain in domains}
    able = [domain for domain in domains if spare[domain] >= mine and not is_hot(room.occupancy, domain)]
    if not able:
        return Kept(CpuSet(), pool, (Reason("cache", "", "no cache domain has room for it: all CPUs of its home"),))
    if former.mask in able:
        return _within(room, pool, former, "its former one")
    weight = _weights(room, kin, domains)
    best = min(able, key=lambda domain: (-weight[domain], -spare[domain], domain & -domain))
    return _within(room, pool, CpuSet(best), _why(best, domains, weight))


def domain_for(machine: Machine, occupancy: Occupancy, request: Request, kin: Kin) -> CpuSet:
    """The domain for a running member that has none; empty where none has room."""
    reservation = occupancy.reservations[request.reservation_key]
    room = survey(machine, occupancy, request, kin)
    pool = pool_of(machine, occupancy, reservation.pool, reservation.numa_nodes)
    return _chosen(room, reservation.numa_nodes, pool, kin).domain


def kin_mask(occupancy: Occupancy, reservation: Reservation) -> int:
    """The CPUs by which a peer is near: its exclusive ones, else those of its cache domain; 0: it is anywhere."""
    return occupancy.own_of(reservation.key) or reservation.cache_domain.mask


def _why(best: int, domains: tuple[int, ...], weight: dict[int, float]) -> str:
    total = sum(weight.values())
    if weight[best]:
        return f"{weight[best] / total:.0%} of its kin in its home's caches are there"
    return f"none of its kin is in a cache with room, of {len(domains)} it has most"


def _former(room: Room, home: NumaSet) -> CpuSet:
    reservation = room.occupancy.reservations.get(room.request.reservation_key)
    return reservation.cache_domain if reservation is not None and reservation.numa_nodes == home else CpuSet()


def _out(room: Room, home: NumaSet) -> NumaSet:
    """The NUMA nodes that its running pod is let out to; empty where it is at home."""
    reservation = room.occupancy.reservations.get(room.request.reservation_key)
    stays = reservation is not None and reservation.numa_nodes == home and reservation.let_out and pinned(room)
    return reservation.let_out if reservation is not None and stays else NumaSet()


def _outside(room: Room, former: CpuSet, pool: CpuSet, out: NumaSet) -> Kept:
    """pool: its home's."""
    request = room.request
    if request.wants_exclusive or request.wants_stable:
        return Kept(former, pool, let_out=out)
    cpus = pool_of(room.machine, room.occupancy, request.pool, out) or pool
    return Kept(former, cpus, (Reason("let out", f"NUMA node {out}", "its home is hot, and its pod is let out"),), out)


def _within(room: Room, pool: CpuSet, domain: CpuSet, why: str) -> Kept:
    requested = _others(room, domain.mask) + room.request.reservation_demand.cpu_milli
    cpus = kept_within(pool, domain, requested)
    if cpus == pool:
        why = "too full now: all CPUs of its home"
    return Kept(domain, cpus, (Reason("cache", f"CPUs {domain}", why),))


def _others(room: Room, domain: int) -> int:
    """Millicores requested by the other reservations that are kept within the domain."""
    occupancy = room.occupancy
    reservation = occupancy.reservations.get(room.request.reservation_key)
    mine = reservation is not None and reservation.cache_domain.mask == domain
    return occupancy.directory.within.get(domain, 0) - (reservation.demand.cpu_milli if mine and reservation else 0)


def _weights(room: Room, kin: Kin, domains: tuple[int, ...]) -> dict[int, float]:
    """The kin weight in each domain, rounded, so that equal sums tie."""
    occupancy, weight = room.occupancy, dict.fromkeys(domains, 0.0)
    for peer, share in peers_of(occupancy, room.request, kin):
        if mask := kin_mask(occupancy, peer):
            for domain in domains:
                weight[domain] += share * (mask & domain).bit_count() / mask.bit_count()
    return {domain: round(total, 9) for domain, total in weight.items()}
