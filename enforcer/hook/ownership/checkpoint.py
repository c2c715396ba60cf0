"""What each container was given, as text: it is kept over restarts, since a cpuset that is read from a cgroup does not
show whose work it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.quotas import Quota
from numakin.placement.state.occupancy import Allocation, Occupancy, Part, Reservation

VERSION = 1

MOST = 4096
"""Containers that are recorded: many times what a node runs (the kubelet's default is 110 pods); those with CPUs of
their own first.
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """homes: NUMA nodes of its reservation. cpus, mems: as set, empty where left as they were. exclusive: those of its
    CPUs that no other container may use. externally_managed: its cpuset is another owner's. open: it has
    no home, and its CPUs are those that no other container has for itself. stable: its CPUs stay what they are.

    reservation: its key; empty: written by an older enforcer. parts, cache_domain, let_out: as the reservation has
    them. before: what it had on other NUMA nodes or with other exclusive CPUs, or let out to others, while the runtime
    has not shown that it has carried out the change; of another owner's, `KnownBeside.left`. asked: millicores and
    bytes that the runtime showed of it when it got CPUs of its own, or bound memory; empty: not known. within: the CPUs
    of another owner within which it is narrowed.
    """

    pod: str
    homes: NumaSet = NumaSet()
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    exclusive: CpuSet = CpuSet()
    externally_managed: bool = False
    open: bool = False
    stable: bool = False
    reservation: str = ""
    parts: tuple[Part, ...] = ()
    cache_domain: CpuSet = CpuSet()
    let_out: NumaSet = NumaSet()
    before: Grant | None = None
    asked: tuple[int, ...] = ()
    within: CpuSet = CpuSet()

    def is_elsewhere(self, other: Grant) -> bool:
        """Whether it is on other NUMA nodes, or has other CPUs for itself: what follows from no other container."""
        return (self.homes, self.exclusive, self.let_out) != (other.homes, other.exclusive, other.let_out)

    @property
    def reach(self) -> NumaSet:
        """Where it may run by this, or may still from before: at home, or let out."""
        before = self.before.let_out if self.before is not None and self.before.homes == self.homes else NumaSet()
        return self.homes | self.let_out | before


class KnownBeside(NamedTuple):
    """What the occupancy does not say of a container: `Grant.asked` and `Grant.within` of it. left: of one that is
    another owner's by now, which of its cpuset is our work and to be undone: what we bound its memory to, and the CPUs
    that we narrowed it to within the other's.
    """

    asked: tuple[int, ...] = ()
    within: CpuSet = CpuSet()
    left: Grant | None = None


Beside = Callable[[Allocation], KnownBeside]


def nothing_beside(_allocation: Allocation) -> KnownBeside:
    return KnownBeside()


@dataclass(frozen=True)
class Past:
    """Allocations by container id. released: nothing is to be pinned until an operator says so. freed: CPUs whose
    exclusive container has ended, while the runtime may not have given them back to their pool: our answer may be lost.
    kept_off: ids of containers that have not opted in and that we keep off exclusive CPUs, of which there may be none.
    quotas: of namespaces, as the extender sent them. marked: ids of containers whose grant is their mark's word alone.
    """

    grants: Mapping[str, Grant] = field(default_factory=dict)
    released: bool = False
    freed: CpuSet = CpuSet()
    kept_off: frozenset[str] = frozenset()
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()

    @cached_property
    def exclusive(self) -> CpuSet:
        """Every CPU that was some container's own."""
        mask = self.freed.mask
        for grant in self.grants.values():
            mask |= grant.exclusive.mask
        return CpuSet(mask)

    @cached_property
    def stable(self) -> CpuSet:
        """Every CPU of a cpuset that stays what it is."""
        mask = 0
        for grant in self.grants.values():
            mask |= grant.cpus.mask if grant.stable else 0
        return CpuSet(mask)

    @cached_property
    def homes(self) -> Mapping[str, frozenset[NumaSet]]:
        """The NUMA nodes that each pod's containers were given, by the pod's uid."""
        homes: dict[str, frozenset[NumaSet]] = {}
        for grant in self.grants.values():
            if grant.homes and not grant.open:
                homes[grant.pod] = homes.get(grant.pod, frozenset()) | {grant.homes}
        return homes

    def ended(self, container: str, exclusive: CpuSet) -> Past:
        """The container has ended. That the runtime says so shows that it had every answer before this one."""
        if container not in self.grants and exclusive == self.freed:
            return self
        grants = {key: grant for key, grant in self.grants.items() if key != container}
        return replace(self, grants=grants, freed=exclusive)

    def listed(self) -> Past:
        """What is left of it once the runtime's list was compared with it."""
        return Past(freed=self.exclusive)

    def with_those_of(self, occupancy: Occupancy, beside: Beside = nothing_beside) -> Past:
        """The occupancy's own word counts where both know a container."""
        grants = {**self.grants, **grants_of(occupancy, beside)}
        return replace(self, grants=grants, kept_off=self.kept_off | kept_off_of(occupancy))


def kept_off_of(occupancy: Occupancy) -> frozenset[str]:
    """Containers that have not opted in and whose CPUs are ours to set, by the operator's rule: no other owner does.
    Also while no CPU is exclusive: the next container with CPUs of its own may be gone before it is written down.
    """
    if not occupancy.rules.everyone:
        return frozenset()
    return frozenset(
        key
        for key, allocation in occupancy.allocations.items()
        if allocation.reservation == key and not allocation.externally_managed
    )


def grants_of(occupancy: Occupancy, beside: Beside = nothing_beside) -> dict[str, Grant]:
    """Of the members that were given something, and of those whose cpuset is externally managed."""
    reservations, allocations = occupancy.reservations, occupancy.allocations
    made = {key: grant_of(it, reservations.get(it.reservation), beside(it)) for key, it in allocations.items()}
    return {key: grant for key, grant in made.items() if grant is not None}


def grant_of(allocation: Allocation, reservation: Reservation | None, beside: KnownBeside) -> Grant | None:
    """None for a container that was given nothing."""
    if allocation.externally_managed:
        return Grant(allocation.pod, externally_managed=True, before=beside.left)
    if allocation.reservation == allocation.container or not (allocation.cpus or allocation.mems or allocation.open):
        return None
    return Grant(
        allocation.pod,
        reservation.numa_nodes if reservation is not None else NumaSet(),
        allocation.cpus,
        allocation.mems,
        allocation.exclusive,
        open=allocation.open,
        stable=allocation.stable,
        reservation=allocation.reservation,
        parts=reservation.parts if reservation is not None else (),
        cache_domain=reservation.cache_domain if reservation is not None else CpuSet(),
        let_out=reservation.let_out if reservation is not None and not allocation.exclusive else NumaSet(),
        asked=beside.asked if allocation.exclusive or allocation.mems else (),
        within=beside.within,
    )


NO_QUOTAS: Mapping[str, Quota] = {}


class Wording:
    """Words an occupancy again and again; what has not changed since the last time is not worded anew."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._carried_out: dict[str, Grant] = {}

    def carried_out(self) -> None:
        """The runtime has shown that it has done all that was worded so far."""
        rows, self._rows = self._rows, {}
        self._carried_out = {key: row.grant for key, row in rows.items() if row.grant is not None}
        self._rows = {key: row for key, row in rows.items() if row.grant is None or row.grant.before is None}

    def text(
        self,
        occupancy: Occupancy,
        loaded: Past,
        *,
        released: bool,
        quotas: Mapping[str, Quota] = NO_QUOTAS,
        beside: Beside = nothing_beside,
    ) -> str:
        """loaded: what was given before and is still to be compared with the runtime's list: at a start, and of members
        that were released. quotas: of now.
        """
        reservations = occupancy.reservations
        rows = {
            key: self._row(allocation, reservations.get(allocation.reservation), beside(allocation))
            for key, allocation in occupancy.allocations.items()
        }
        self._rows = rows
        texts = [(not row.allocation.exclusive, row.text) for row in rows.values() if row.text]
        worded = {key for key, row in rows.items() if row.text}
        texts += [(not grant.exclusive, _pair(key, grant)) for key, grant in loaded.grants.items() if key not in worded]
        if len(texts) > MOST:
            texts.sort(key=itemgetter(0))
        state = f'"released":{"true" if released else "false"},"freed":"{loaded.freed}"'
        if kept_off := sorted(loaded.kept_off | kept_off_of(occupancy))[:MOST]:
            state += f',"kept_off":{json.dumps(kept_off)}'
        if quotas:
            state += f',"quotas":{json.dumps({name: _limits(quotas[name]) for name in sorted(quotas)[:MOST]})}'
        head = f'{{"version":{VERSION},{state},"containers":{{\n'
        return head + ",\n".join(text for _, text in texts[:MOST]) + "}}\n"

    def _row(self, allocation: Allocation, reservation: Reservation | None, beside: KnownBeside) -> _Row:
        key = allocation.container
        known = self._rows.get(key)
        same = known is not None and known.allocation is allocation and known.reservation is reservation
        if known is not None and same and known.beside == beside:
            return known
        grant, before = grant_of(allocation, reservation, beside), self._carried_out.get(key)
        ours = grant is not None and not grant.externally_managed
        if grant is not None and ours and before is not None and grant.is_elsewhere(before):
            grant = replace(grant, before=replace(before, before=None))
        return _Row(allocation, reservation, beside, grant, _pair(key, grant) if grant is not None else "")


class _Row(NamedTuple):
    """What a container was given, of which values, and in which words; none for one that was given nothing."""

    allocation: Allocation
    reservation: Reservation | None
    beside: KnownBeside
    grant: Grant | None
    text: str


def read(text: str) -> Past:
    """ValueError, with what is wrong, for anything that `Wording.text` would not have made."""
    try:
        table = json.loads(text)
        if table["version"] != VERSION:
            raise ValueError(f"version {table['version']!r} is not known here")
        released, freed, rows = table["released"], table.get("freed", ""), table["containers"]
        if not isinstance(released, bool) or not isinstance(freed, str) or len(rows) > MOST:
            raise ValueError(f"more than {MOST} containers, no true or false for 'released', or no list for 'freed'")
        kept_off = table.get("kept_off", [])
        if not isinstance(kept_off, list) or len(kept_off) > MOST or any(not isinstance(key, str) for key in kept_off):
            raise ValueError(f"more than {MOST} containers, or none by name, in 'kept_off'")
        grants = {key: _grant(row) for key, row in rows.items()}
        return Past(grants, released, CpuSet.parse(freed), frozenset(kept_off), _quotas(table.get("quotas", {})))
    except (KeyError, TypeError, AttributeError, RecursionError, PlacementError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _pair(key: str, grant: Grant) -> str:
    return f"{json.dumps(key)}:{json.dumps(_worded(grant))}"


def _worded(grant: Grant) -> dict[str, object]:
    row: dict[str, object] = {
        "pod": grant.pod,
        "homes": str(grant.homes),
        "cpus": str(grant.cpus),
        "mems": str(grant.mems),
        "exclusive": str(grant.exclusive),
        "externally_managed": grant.externally_managed,
    }
    place: dict[str, object] = {"reservation": grant.reservation, "cache_domain": str(grant.cache_domain)}
    place |= {"parts": grant.parts, "let_out": str(grant.let_out), "asked": grant.asked, "within": str(grant.within)}
    row |= {name: value for name, value in {"open": grant.open, "stable": grant.stable, **place}.items() if value}
    return row | ({"before": _worded(grant.before)} if grant.before is not None else {})


def _grant(row: Mapping[str, Any]) -> Grant:
    texts = {name: row[name] for name in ("pod", "homes", "cpus", "mems", "exclusive")}
    texts |= {name: row.get(name, "") for name in ("reservation", "cache_domain", "let_out", "within")}
    flags = {"externally_managed": row["externally_managed"]}
    flags |= {name: row.get(name, False) for name in ("open", "stable")}
    before = row.get("before")
    worded = all(isinstance(text, str) for text in texts.values()) and isinstance(before, dict | None)
    if not (worded and all(isinstance(flag, bool) for flag in flags.values())):
        raise ValueError(f"not a grant: {str(row)[:100]}")
    sets: dict[str, Any] = {
        **{name: CpuSet.parse(texts.pop(name)) for name in ("cpus", "exclusive", "cache_domain", "within")},
        **{name: NumaSet.parse(texts.pop(name)) for name in ("homes", "mems", "let_out")},
    }
    if not sets["exclusive"] <= sets["cpus"]:
        raise ValueError(f"exclusive CPUs {sets['exclusive']} are not among {sets['cpus']}")
    earlier = _grant({**before, "before": None}) if before is not None else None
    parts, asked = _parts(row.get("parts", [])), _numbers(row.get("asked", []))
    return Grant(**texts, **flags, **sets, parts=parts, before=earlier, asked=asked)


def _limits(quota: Quota) -> dict[str, object]:
    limits = {"exclusive_cpus": quota.exclusive_cpus, "group_size": quota.group_size}
    keys = sorted(quota.keys) if quota.keys is not None else None
    return {name: limit for name, limit in {**limits, "keys": keys}.items() if limit is not None}


def _quotas(rows: Any) -> dict[str, Quota]:
    """TypeError, AttributeError or ValueError for anything else than `_limits` by namespace."""
    if len(rows) > MOST:
        raise ValueError(f"more than {MOST} namespaces in 'quotas'")
    quotas = {}
    for name, row in rows.items():
        limits = {key: _whole(row[key]) for key in ("exclusive_cpus", "group_size") if key in row}
        keys = frozenset(map(str, row["keys"])) if "keys" in row else None
        quotas[str(name)] = Quota(**limits, keys=keys)
    return quotas


def _parts(rows: Any) -> tuple[Part, ...]:
    """TypeError or ValueError for anything else than rows of numbers."""
    return tuple(
        Part(_whole(node), _whole(cpu), _whole(memory), tuple((_whole(size), _whole(count)) for size, count in pages))
        for node, cpu, memory, pages in rows
    )


def _numbers(row: Any) -> tuple[int, ...]:
    """TypeError or ValueError for anything else than a row of numbers."""
    return tuple(map(_whole, row))


def _whole(number: object) -> int:
    if type(number) is not int:
        raise ValueError(f"not a whole number: {str(number)[:100]}")
    return number
