"""Hot CPUs, and who of their members is let out: one rule for cache domains and NUMA nodes.

Members are confined to a cache domain or to NUMA nodes: never slower for it than they would be without. A *domain* is
such a set of CPUs.

    hot    90 % of its CPUs are in use in two readings, while elsewhere there is CPU to spare
    cool   for a minute neither 70 % of its CPUs are in use, nor would be if all of its members came home

CPU to spare is what idles. Where nothing does, it is also what is used elsewhere by those who may run here and keep
away, since the members here leave them nothing: others then have more of the machine than those who are confined.
That is the kernel's own balance: it sends what may run anywhere to where there is less to wait for. And it is what
members who are confined elsewhere have beyond the part that all would have together, by what they request: on two full
NUMA nodes of which one has more members than the other.

While a domain is hot, members are let out to the next wider set that has CPU to spare: its NUMA node, its socket's or
the nearest NUMA nodes, the machine. What they want is what they use and, where the kernel says so, wait for. As many go
as it takes until those who stay have their fair part: no more than nine tenths of the domain or, where the wider set is
full as well, what each CPU of both has to carry. Who has least of his kin there goes first. Of fewer than four CPUs all
go, also where they alone would not fill them: to share so few with others costs more than kin bring.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from numakin.placement.decide.cpus.cache_domain import kin_mask
from numakin.placement.decide.kin_share import peers_of
from numakin.placement.decide.request import Kin, Request
from numakin.placement.decide.scoring import kin_share
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.optin.options import Move, Policy, Pool
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation

HOT = 0.9
"""Share of a domain's CPUs that are in use when it gets hot, and up to which those who stay may fill it."""

COOL = 0.7
"""Share of its CPUs below which it is cool."""

SPARE = 1 - HOT
"""Share of the CPUs elsewhere that is worth leaving for."""

WAITS = 0.1
"""Share of time that a member waits for CPU (PSI "some" of its cgroup) from which it is harmed."""

FAIR = 0.9
"""Members who stay and have this part of what those who were let out have, in the mean, are not worse off."""

IDLE = 0.01
"""CPUs: who uses less brings no relief."""

MOST_WAITED = 0.95
"""Share of time: beyond it, what a member wants is not told by what it waits for."""

FEW_CPUS = 4
"""Of a domain with fewer shared CPUs all members are let out. Measured on domains of one CPU alone, once: when one of
three stayed, all three had a 99th percentile of 2 to 6 times what they have unpinned (`benchmarks.harm`, "ten times the
request"). In played queues (`benchmarks.harm.queues`) it takes 22, 11, 8 and 6 lengths of a piece of work on 1, 2, 3
and 4 CPUs that are 90 % in use; that four are enough for some to stay is a choice, and not measured.
"""

TOLERANCE = 0.05
"""Part of what is to leave that may stay: use is measured over seconds."""


@dataclass(frozen=True, slots=True)
class Use:
    """Of one member since the last reading. cpus: in use by it; waits: share of time that something of it waited for a
    CPU, None where the kernel does not say.
    """

    cpus: float
    waits: float | None = None

    @property
    def wanted(self) -> float:
        """CPUs that it would use if it had to wait for none: right for one thread, not too little for several."""
        return self.cpus / (1 - min(self.waits or 0.0, MOST_WAITED))


@dataclass(frozen=True, slots=True)
class Readings:
    """busy: by CPU, the share of the time that it was in use. members: by reservation; absent: not known yet."""

    busy: Mapping[int, float] = field(default_factory=dict)
    members: Mapping[str, Use] = field(default_factory=dict)

    def used(self, cpus: CpuSet) -> float:
        """How many of these CPUs were in use."""
        return sum(self.busy.get(cpu, 0.0) for cpu in cpus)

    def used_by(self, keys: Iterable[str]) -> float:
        """CPUs in use by these members, as far as that is known."""
        return sum(self.members[key].cpus for key in keys if key in self.members)


@dataclass(frozen=True, slots=True)
class Domain:
    """cpus: all of them; pool: those that no container has alone. home: its NUMA nodes. cache: whether it is a part of
    one. inside: the reservations of members who are confined to it, or to a part of it; out: of those who are let out
    of it.
    """

    cpus: CpuSet
    pool: CpuSet
    home: NumaSet
    cache: bool
    inside: tuple[str, ...]
    out: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return self.inside + self.out


@dataclass(frozen=True, slots=True)
class WayOut:
    """to: the NUMA nodes that members are let out to. share: the part of what the members inside want that leaves."""

    to: NumaSet
    share: float


def members(occupancy: Occupancy) -> list[Reservation]:
    """Of those who share CPUs that we gave them."""
    there = []
    for key, reservation in occupancy.reservations.items():
        if reservation.opted_in and reservation.pool is not Pool.RESERVED:
            held = map(occupancy.allocations.__getitem__, occupancy.directory.by_reservation.get(key, ()))
            if any(map(_shares, held)):
                there.append(reservation)
    return there


def _shares(allocation: Allocation) -> bool:
    return bool(allocation.cpus) and not (allocation.exclusive or allocation.externally_managed or allocation.open)


def domains(machine: Machine, occupancy: Occupancy) -> list[Domain]:
    """The NUMA nodes, and whatever else members are confined to, where there is anything around it."""
    there = members(occupancy)
    spans = {reservation.key: (_home(machine, reservation), _span(machine, reservation)) for reservation in there}
    masks = {machine.node(node).cpus.mask: (NumaSet(1 << node), False) for node in machine.cpu_nodes}
    for reservation in there:
        home, out = reservation.numa_nodes & machine.cpu_nodes, reservation.let_out & machine.cpu_nodes
        for nodes in (home, out) if out else (home,):
            masks.setdefault(machine.cpus_of(nodes).mask, (nodes, False))
        if reservation.cache_domain:
            masks.setdefault(reservation.cache_domain.mask, (home, True))
    masks.pop(machine.cpus.mask, None)
    shared = machine.cpus - occupancy.exclusive - occupancy.reserved
    return [
        Domain(
            CpuSet(mask),
            shared & CpuSet(mask),
            home,
            cache,
            inside=tuple(key for key, (_, span) in spans.items() if not span & ~mask),
            out=tuple(key for key, (confined, span) in spans.items() if not confined & ~mask and span & ~mask),
        )
        for mask, (home, cache) in masks.items()
        if shared.mask & mask
    ]


def _home(machine: Machine, reservation: Reservation) -> int:
    """The CPUs that it is confined to when nothing is hot."""
    return reservation.cache_domain.mask or machine.cpus_of(reservation.numa_nodes & machine.cpu_nodes).mask


def _span(machine: Machine, reservation: Reservation) -> int:
    """Those that it is confined to now."""
    if reservation.let_out:
        return machine.cpus_of(reservation.let_out & machine.cpu_nodes).mask
    return _home(machine, reservation)


def is_inside(machine: Machine, domain: Domain, reservation: Reservation) -> bool:
    """Whether a member is confined to it, or to a part of it, now."""
    return not _span(machine, reservation) & ~domain.cpus.mask


def crowded(domain: Domain, readings: Readings) -> bool:
    """Whether nearly all of its CPUs are in use."""
    return readings.used(domain.pool) >= HOT * len(domain.pool)


def filled(domain: Domain, readings: Readings) -> bool:
    """Whether the members inside are enough for that, as far as is known: those who were let out may run there too."""
    return readings.used_by(domain.inside) >= HOT * len(domain.pool)


def relaxed(domain: Domain, readings: Readings) -> bool:
    """Whether it could have all of its members back; not where what one of them uses is not known."""
    if any(key not in readings.members for key in domain.members):
        return False
    return max(readings.used(domain.pool), readings.used_by(domain.members)) < COOL * len(domain.pool)


def harmed(domain: Domain, readings: Readings) -> bool:
    """Whether a container inside waits for CPU, as far as the kernel says."""
    waits = [use.waits for key in domain.inside if (use := readings.members.get(key)) and use.waits is not None]
    return not waits or max(waits) >= WAITS


def way_out(
    machine: Machine, occupancy: Occupancy, domain: Domain, every: Iterable[Domain], readings: Readings
) -> WayOut | None:
    """The next wider set that has CPU to spare. every: all domains, of now as `domain` is."""
    shared = machine.cpus - occupancy.exclusive - occupancy.reserved
    unequal = len(domain.pool) < FEW_CPUS or _squeezed(domain, readings) or crowded_out(domain, readings)
    for wider in wider_sets(machine, occupancy, domain):
        around = machine.cpus_of(wider) - domain.cpus
        others = around & shared
        if not others:
            continue
        used = readings.used(others)
        theirs = {key for each in every if each.cpus <= around for key in each.members}
        idle, spare = len(others) - used, len(others) - min(used, readings.used_by(theirs))
        if unequal:
            spare += _ceded(occupancy, domain, theirs, readings, spare)
        if idle >= SPARE * len(others) or (unequal and spare >= SPARE * len(others)):
            return WayOut(wider, spare / (spare + len(domain.pool)))
    return None


def _ceded(occupancy: Occupancy, domain: Domain, theirs: Iterable[str], readings: Readings, spare: float) -> float:
    """CPUs that those who are confined elsewhere have beyond the part that they would have if those inside could use
    these CPUs, and the spare ones, as well.
    """
    there = sorted(((use / weight, use, weight) for use, weight in _hungry(occupancy, theirs, readings)), reverse=True)
    here = _hungry(occupancy, domain.inside, readings)
    total, weights = spare + sum(use for use, _ in here), sum(weight for _, weight in here)
    ceding = list[tuple[float, float]]()
    for each, use, weight in there:
        if not weights or each <= total / weights:
            break
        total, weights = total + use, weights + weight
        ceding.append((use, weight))
    return sum(use - weight * total / weights for use, weight in ceding)


def _hungry(occupancy: Occupancy, keys: Iterable[str], readings: Readings) -> list[tuple[float, float]]:
    """CPUs and weight of those who use any: the kernel shares CPUs out by requests."""
    return [
        (use.cpus, max(1.0, occupancy.reservations[key].demand.cpu_milli))
        for key in keys
        if (use := readings.members.get(key)) is not None and use.cpus >= IDLE
    ]


def crowded_out(domain: Domain, readings: Readings) -> bool:
    """Whether those who were let out have less each than those who stayed, though all of it is in use: the kernel
    shares out whole threads, and where there are few, who stays meets others there half of the time.
    """
    inside, out = (_mean(keys, readings) for keys in (domain.inside, domain.out))
    return crowded(domain, readings) and 0.0 < out < FAIR * inside


def _squeezed(domain: Domain, readings: Readings) -> bool:
    """Whether the members inside fill it by themselves, and have less each than those who were let out."""
    if not filled(domain, readings):
        return False
    inside, out = (_mean(keys, readings) for keys in (domain.inside, domain.out))
    return not out or inside < FAIR * out


def _mean(keys: Iterable[str], readings: Readings) -> float:
    """Of those who use any."""
    used = [use.cpus for key in keys if (use := readings.members.get(key)) and use.cpus >= IDLE]
    return sum(used) / len(used) if used else 0.0


def wider_sets(machine: Machine, occupancy: Occupancy, domain: Domain) -> Iterator[NumaSet]:
    """Around a domain, each within the next. NUMA nodes where a pod is that asked to be alone are in none."""
    home, alone = domain.home, _taken_alone(occupancy)
    if domain.cache:
        yield home
    last = home
    for wider in (_next(machine, home), machine.cpu_nodes):
        usable = (wider - alone) | home
        if last != usable and last <= usable:
            yield usable
            last = usable


def _taken_alone(occupancy: Occupancy) -> NumaSet:
    """The NUMA nodes where a pod is that asked to be alone."""
    special = (occupancy.reservations[key] for key in occupancy.directory.special)
    return NumaSet(reduce(or_, (reservation.numa_nodes.mask for reservation in special if reservation.alone), 0))


def _next(machine: Machine, home: NumaSet) -> NumaSet:
    """With those of its sockets, where there are others; else with the nearest."""
    near = NumaSet.of(other for other in machine.cpu_nodes if any(machine.same_socket(node, other) for node in home))
    if not near <= home:
        return near | home
    away = machine.cpu_nodes - home
    least = min((machine.distance(home.lowest, other) for other in away), default=0)
    return home | NumaSet.of(other for other in away if machine.distance(home.lowest, other) == least)


def may_leave(occupancy: Occupancy, requests: Iterable[Request]) -> bool:
    """Whether a member lets its containers' CPUs be widened. requests: of all that it has live. One that has CPUs that
    stay keeps them though its namespace may not ask for such any more.
    """
    return all(
        request.opt_in.move is not Move.NEVER
        and request.opt_in.policy is Policy.BEST_EFFORT
        and not (request.opt_in.alone or request.wants_stable or occupancy.allocations[request.container].stable)
        for request in requests
    )


def kin_there(machine: Machine, occupancy: Occupancy, domain: Domain, request: Request, kin: Kin) -> float:
    """The share of its kin's weight that is in the domain."""
    near, total = 0.0, kin.elsewhere
    for peer, weight in peers_of(occupancy, request, kin):
        mask = kin_mask(occupancy, peer) or machine.cpus_of(peer.numa_nodes & machine.cpu_nodes).mask
        near += weight * (mask & domain.cpus.mask).bit_count() / max(1, mask.bit_count())
        total += weight
    return kin_share(near, total)


def leavers(domain: Domain, way: WayOut, readings: Readings, kin: Mapping[str, float]) -> list[str]:
    """Who is let out, at least one where any may. kin: by the reservations of those who may leave, as `kin_there`
    has it.
    """
    known = {key: use for key in domain.inside if (use := readings.members.get(key)) is not None}
    if known:
        wanted = {key: use.wanted for key, use in known.items()}
    else:
        wanted = dict.fromkeys(domain.inside, readings.used(domain.pool) / max(1, len(domain.inside)))
    leave = way.share * sum(wanted.values())
    if known and all(use.waits is not None for use in known.values() if use.cpus):
        leave = min(leave, sum(wanted.values()) - HOT * len(domain.pool))
    if len(domain.pool) < FEW_CPUS:
        leave = float("inf")
    gone, leaving = 0.0, list[str]()
    for key in sorted(kin, key=lambda key: (round(kin[key], 9), -wanted.get(key, 0.0), key)):
        if wanted.get(key, 0.0) < IDLE:
            continue
        if leaving and gone >= leave * (1 - TOLERANCE):
            break
        leaving.append(key)
        gone += wanted[key]
    return leaving


def back(machine: Machine, occupancy: Occupancy, reservation: Reservation) -> NumaSet:
    """Where a member who is let out may be: as narrow as what it is confined to lets it, and nowhere that a pod which
    asked to be alone has come to since; empty: at home.
    """
    home = reservation.numa_nodes & machine.cpu_nodes
    out = reservation.let_out - (_taken_alone(occupancy) - home)
    if not out <= home and pools.is_hot(occupancy, machine.cpus_of(home).mask):
        return out
    if reservation.cache_domain and pools.is_hot(occupancy, reservation.cache_domain.mask):
        return home
    return NumaSet()
