"""Relief for members whose CPUs are hot: they are let out, and come home when it is cool
(`numakin.placement.decide.relief`).

What members use is read only while some domain is busy or hot, in steps between which events may come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from enforcer.hook.ledger import Ledger
from numakin.placement.decide import relief
from numakin.placement.decide.decision import Reason
from numakin.placement.decide.relief import Domain, Readings, Use, WayOut
from numakin.placement.model.live_usage import Live
from numakin.placement.state.occupancy import Reservation
from numakin.placement.state.pools import is_hot, members_cpus
from numakin.process.log import Log

log = Log("hook.agent")

READINGS = 12
"""So many in a row find a domain cool before it is: a minute's."""

AT_ONCE = 8
"""Members whose cgroups are read, or whose kin are looked for, in one step: some 0.5 ms."""


class Relief:
    """Changes the ledger's occupancy; whose CPUs are others then is `ledger.settle`'s to find.

    waiting: whether the runtime still lacks some of what was settled before, so that what is read shows nothing of it.
    clock: seconds, monotonic.
    """

    def __init__(
        self, ledger: Ledger, waiting: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger, self._waiting, self._clock = ledger, waiting, clock
        self._taken: dict[str, tuple[float, float, float | None]] = {}
        self._uses: dict[str, Use] = {}
        self._crowded: frozenset[int] = frozenset()
        self._relieved: set[int] = set()
        self._cool: dict[int, int] = {}
        self._due: list[tuple[Domain, WayOut, Readings]] = []

    def steps(self) -> Iterator[Callable[[], None]]:
        """To be run one after the other, once the ledger has taken over what the kernel says now."""
        ledger, busy = self._ledger, Readings(self._ledger.node.busy_cpus())
        watched = relief.domains(ledger.machine, ledger.occupancy)
        if ledger.released or not busy.busy or not any(self._concerns(domain, busy) for domain in watched):
            yield partial(self._rest, watched)
            return
        self._uses = {}
        containers = [
            container
            for key in dict.fromkeys(key for domain in watched for key in domain.members)
            for container in ledger.occupancy.directory.by_reservation.get(key, ())
        ]
        for some in _some(containers):
            yield partial(self._read, some)
        yield partial(self._turn, busy)
        for domain, way, readings in self._due:
            kin: dict[str, float] = {}
            for some in _some(domain.inside):
                yield partial(self._weigh, domain, some, kin)
            yield partial(self._let_out, domain, way, readings, kin)

    def _concerns(self, domain: Domain, readings: Readings) -> bool:
        """Whether it is hot, or may get so: what its members use is asked once before it does."""
        if domain.out or is_hot(self._ledger.occupancy, domain.cpus.mask):
            return True
        return readings.used(domain.pool) >= relief.COOL * len(domain.pool)

    def _rest(self, watched: Sequence[Domain]) -> None:
        """Nothing is busy."""
        self._taken, self._crowded = {}, frozenset()
        self._relieved.clear()
        self._cool.clear()
        self._set_hot(self._unwatched(watched))

    def _read(self, containers: Sequence[str]) -> None:
        """What each used since it was asked before."""
        node, residents, now = self._ledger.node, self._ledger.residents.now(), self._clock()
        for container in containers:
            path = residents[container].cgroups_path if container in residents else ""
            seconds = node.cpu_seconds(path) if path else None
            if seconds is None:
                self._taken.pop(container, None)
                if path and node.cpuset_now(path) is None:
                    self._uses[container] = Use(0.0)  # it has no cgroup: its start failed, or is still to come
                continue
            waited, before = node.cpu_waited(path), self._taken.get(container)
            self._taken[container] = now, seconds, waited
            if before is not None and now > before[0]:
                self._uses[container] = _use(before, (now, seconds, waited))

    def _turn(self, busy: Readings) -> None:
        """Notes which domains are hot or cool now, and which are to be relieved; calls home who may come."""
        ledger, self._due = self._ledger, []
        machine, occupancy = ledger.machine, ledger.occupancy
        watched = relief.domains(machine, occupancy)
        readings = Readings(busy.busy, self._members(watched))
        turned, crowded = self._unwatched(watched), set[int]()
        for domain in watched:
            mask = domain.cpus.mask
            hot = is_hot(occupancy, mask)
            if hot or domain.out:
                turned[mask] = not self._cooled(domain, readings)
            if not relief.crowded(domain, readings):
                continue
            crowded.add(mask)
            short = relief.filled(domain, readings) or relief.crowded_out(domain, readings)
            again = short and mask not in self._relieved if hot else mask in self._crowded
            if again and not self._waiting() and relief.harmed(domain, readings):
                way = relief.way_out(machine, occupancy, domain, watched, readings)
                if way is not None:
                    turned[mask] = True
                    self._due.append((domain, way, readings))
        self._crowded = frozenset(crowded)
        self._relieved.clear()
        self._taken = {key: taken for key, taken in self._taken.items() if key in occupancy.allocations}
        self._set_hot(turned)
        self._call_home()

    def _cooled(self, domain: Domain, readings: Readings) -> bool:
        mask = domain.cpus.mask
        self._cool[mask] = self._cool.get(mask, 0) + 1 if relief.relaxed(domain, readings) else 0
        if self._cool[mask] < READINGS:
            return False
        del self._cool[mask]
        return True

    def _members(self, watched: Sequence[Domain]) -> dict[str, Use]:
        """By reservation, where it is known of all of its containers."""
        by_reservation, members = self._ledger.occupancy.directory.by_reservation, dict[str, Use]()
        for key in {key for domain in watched for key in domain.members}:
            uses = [self._uses.get(container) for container in by_reservation.get(key, ())]
            known = [use for use in uses if use is not None]
            if len(known) == len(uses):
                waits = [use.waits for use in known if use.waits is not None]
                members[key] = Use(sum(use.cpus for use in known), max(waits, default=None))
        return members

    def _unwatched(self, watched: Sequence[Domain]) -> dict[int, bool]:
        """What was hot and is no more."""
        masks = {domain.cpus.mask for domain in watched}
        return {mask: False for mask, hot in self._ledger.occupancy.live.hot.items() if hot and mask not in masks}

    def _set_hot(self, turned: Mapping[int, bool]) -> None:
        ledger, occupancy = self._ledger, self._ledger.occupancy
        news = {mask: hot for mask, hot in turned.items() if hot != is_hot(occupancy, mask)}
        if not news:
            return
        ledger.occupancy = occupancy.with_live(occupancy.live.after(Live(hot=news)))
        for domain in relief.domains(ledger.machine, occupancy):
            if (hot := news.get(domain.cpus.mask)) is not None:
                state = "hot: no newcomers, and members are let out" if hot else "cool: its members are at home"
                log.info(f"{_kind(domain)} {state}", cpus=domain.cpus, members=len(domain.members))

    def _call_home(self) -> None:
        ledger = self._ledger
        changes = {
            key: replace(reservation, let_out=to)
            for key, reservation in ledger.occupancy.reservations.items()
            if reservation.let_out
            and (to := relief.back(ledger.machine, ledger.occupancy, reservation)) != reservation.let_out
        }
        if not changes:
            return
        ledger.occupancy = ledger.occupancy.changed(reservations=changes)
        for reservation in changes.values():
            where = reservation.cache_domain if reservation.cache_domain and not reservation.let_out else ""
            number = f"CPUs {where}" if where else f"NUMA node {reservation.numa_nodes}"
            self._record(
                reservation, Reason("home again", number, "cool: its CPUs were less than 70 % in use for a minute")
            )

    def _weigh(self, domain: Domain, some: Sequence[str], kin: dict[str, float]) -> None:
        """How much of their kin those who may leave have there."""
        ledger, occupancy = self._ledger, self._ledger.occupancy
        for key in some:
            live = occupancy.directory.by_reservation.get(key, ())
            requests = [ledger.requests[container] for container in live if container in ledger.requests]
            if not requests or len(requests) < len(live) or not relief.may_leave(occupancy, requests):
                continue
            known = ledger.learned.kin(ledger.machine, occupancy, requests[0], ledger.nominations.kin(requests[0].pod))
            kin[key] = relief.kin_there(ledger.machine, occupancy, domain, requests[0], known)

    def _let_out(self, domain: Domain, way: WayOut, readings: Readings, kin: Mapping[str, float]) -> None:
        """Of those who are in the domain still: between two steps members end or are moved, and NUMA nodes go."""
        ledger, occupancy = self._ledger, self._ledger.occupancy
        held = occupancy.reservations if way.to <= ledger.machine.cpu_nodes else {}
        there = {
            key: share
            for key, share in kin.items()
            if key in held and relief.is_inside(ledger.machine, domain, held[key])
        }
        leaving = relief.leavers(domain, way, readings, there)
        self._relieved.add(domain.cpus.mask)
        if not leaving:
            return
        changes = {key: replace(occupancy.reservations[key], let_out=way.to) for key in leaving}
        ledger.occupancy = occupancy.changed(reservations=changes)
        used = readings.used(domain.pool) / len(domain.pool)
        log.info(
            f"members are let out of a hot {_kind(domain)}",
            cpus=domain.cpus, used=f"{used:.0%}", members=len(leaving), of=len(domain.inside), to=way.to,
        )  # fmt: skip
        for key, reservation in changes.items():
            effect = (
                f"CPUs {domain.cpus} are {used:.0%} in use while others are not; {there[key]:.0%} of its kin is there"
            )
            self._record(reservation, Reason("let out", f"NUMA node {way.to}", effect))

    def _record(self, reservation: Reservation, why: Reason) -> None:
        ledger, residents = self._ledger, self._ledger.residents.now()
        occupancy = ledger.occupancy
        cpus = members_cpus(ledger.machine, occupancy, reservation)
        for container in occupancy.directory.by_reservation.get(reservation.key, ()):
            allocation = occupancy.allocations[container]
            if container in residents and not (
                allocation.exclusive or allocation.externally_managed or allocation.open
            ):
                given = replace(allocation, cpus=cpus or allocation.cpus)
                ledger.records.relieved(residents[container], given, reservation, why, at=occupancy.generation)


def _use(before: tuple[float, float, float | None], now: tuple[float, float, float | None]) -> Use:
    passed = now[0] - before[0]
    waits = None if now[2] is None or before[2] is None else min(1.0, max(0.0, now[2] - before[2]) / passed)
    return Use(max(0.0, now[1] - before[1]) / passed, waits)


def _some(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[at : at + AT_ONCE] for at in range(0, len(keys), AT_ONCE))


def _kind(domain: Domain) -> str:
    return "cache domain" if domain.cache else f"NUMA node {domain.home}"
