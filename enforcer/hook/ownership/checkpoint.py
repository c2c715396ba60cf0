"""What each container was given, as text: it is kept over restarts, since a cpuset that is read from a cgroup does not
show whose work it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

from placement.model.cpuset import CpuSet, NumaSet
from placement.model.errors import PlacementError
from placement.state.occupancy import Allocation, Occupancy, Reservation

VERSION = 1

MOST = 4096
"""Containers that are recorded: many times what a node runs (the kubelet's default is 110 pods); those with CPUs of
their own first.
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """homes: NUMA nodes of its reservation. cpus, mems: as set, empty where left as they were. exclusive: those of its
    CPUs that nobody else may use. externally_managed: nothing of ours, its cpuset is externally managed. open: it has
    no home, and its CPUs are those that no other container has for itself. stable: its CPUs stay what they are.
    """

    pod: str
    homes: NumaSet = NumaSet()
    cpus: CpuSet = CpuSet()
    mems: NumaSet = NumaSet()
    exclusive: CpuSet = CpuSet()
    externally_managed: bool = False
    open: bool = False
    stable: bool = False


@dataclass(frozen=True)
class Past:
    """Allocations by container id. released: nothing is to be pinned until an operator says so. freed: CPUs whose
    exclusive container has ended, while the runtime may not have given them back to their pool: our answer may be lost.
    """

    grants: Mapping[str, Grant] = field(default_factory=dict)
    released: bool = False
    freed: CpuSet = CpuSet()

    @cached_property
    def exclusive(self) -> CpuSet:
        """Every CPU that was some container's own."""
        mask = self.freed.mask
        for grant in self.grants.values():
            mask |= grant.exclusive.mask
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

    def with_those_of(self, occupancy: Occupancy) -> Past:
        """The occupancy's own word counts where both know a container."""
        return replace(self, grants={**self.grants, **grants_of(occupancy)})


def grants_of(occupancy: Occupancy) -> dict[str, Grant]:
    """Of the members that were given something, and of those whose cpuset is externally managed."""
    made = {
        key: grant_of(allocation, occupancy.reservations.get(allocation.reservation))
        for key, allocation in occupancy.allocations.items()
    }
    return {key: grant for key, grant in made.items() if grant is not None}


def grant_of(allocation: Allocation, reservation: Reservation | None) -> Grant | None:
    """None for a container that was given nothing."""
    if allocation.externally_managed:
        return Grant(allocation.pod, externally_managed=True)
    if allocation.reservation == allocation.container or not (allocation.cpus or allocation.mems):
        return None
    homes = reservation.numa_nodes if reservation is not None else NumaSet()
    return Grant(
        allocation.pod,
        homes,
        allocation.cpus,
        allocation.mems,
        allocation.exclusive,
        open=allocation.open,
        stable=allocation.stable,
    )


class Wording:
    """Words an occupancy again and again; what has not changed since the last time is not worded anew."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Allocation, Reservation | None, str]] = {}

    def text(self, occupancy: Occupancy, loaded: Past, *, released: bool) -> str:
        """loaded: what was read at the start and is still to be compared with the runtime's list."""
        rows = {
            key: self._row(allocation, occupancy.reservations.get(allocation.reservation))
            for key, allocation in occupancy.allocations.items()
        }
        self._rows = rows
        texts = [(not allocation.exclusive, row) for allocation, _, row in rows.values() if row]
        texts += [(not grant.exclusive, _pair(key, grant)) for key, grant in loaded.grants.items() if key not in rows]
        if len(texts) > MOST:
            texts.sort(key=itemgetter(0))
        state = f'"released":{"true" if released else "false"},"freed":"{loaded.freed}"'
        head = f'{{"version":{VERSION},{state},"containers":{{\n'
        return head + ",\n".join(text for _, text in texts[:MOST]) + "}}\n"

    def _row(
        self, allocation: Allocation, reservation: Reservation | None
    ) -> tuple[Allocation, Reservation | None, str]:
        known = self._rows.get(allocation.container)
        if known is not None and known[0] is allocation and known[1] is reservation:
            return known
        grant = grant_of(allocation, reservation)
        return allocation, reservation, _pair(allocation.container, grant) if grant is not None else ""


def read(text: str) -> Past:
    """ValueError, with what is wrong, for anything that `Wording.text` would not have made."""
    try:
        table = json.loads(text)
        if table["version"] != VERSION:
            raise ValueError(f"version {table['version']!r} is not known here")
        released, freed, rows = table["released"], table.get("freed", ""), table["containers"]
        if not isinstance(released, bool) or not isinstance(freed, str) or len(rows) > MOST:
            raise ValueError(f"more than {MOST} containers, no true or false for 'released', or no list for 'freed'")
        return Past({key: _grant(row) for key, row in rows.items()}, released, CpuSet.parse(freed))
    except (KeyError, TypeError, AttributeError, RecursionError, PlacementError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _pair(key: str, grant: Grant) -> str:
    row = {"pod": grant.pod, "homes": str(grant.homes), "cpus": str(grant.cpus), "mems": str(grant.mems)}
    row["exclusive"] = str(grant.exclusive)
    kind = {name: True for name, holds in (("open", grant.open), ("stable", grant.stable)) if holds}
    return f"{json.dumps(key)}:{json.dumps({**row, 'externally_managed': grant.externally_managed, **kind})}"


def _grant(row: Mapping[str, object]) -> Grant:
    pod, externally_managed = row["pod"], row["externally_managed"]
    left_open, stable = row.get("open", False), row.get("stable", False)
    lists = {name: row[name] for name in ("homes", "cpus", "mems", "exclusive")}
    if (
        not isinstance(pod, str)
        or not isinstance(externally_managed, bool)
        or not isinstance(left_open, bool)
        or not isinstance(stable, bool)
        or any(not isinstance(x, str) for x in lists.values())
    ):
        raise ValueError(f"not a grant: {str(row)[:100]}")
    cpus, exclusive = CpuSet.parse(str(lists["cpus"])), CpuSet.parse(str(lists["exclusive"]))
    if not exclusive <= cpus:
        raise ValueError(f"exclusive CPUs {exclusive} are not among {cpus}")
    homes, mems = NumaSet.parse(str(lists["homes"])), NumaSet.parse(str(lists["mems"]))
    return Grant(pod, homes, cpus, mems, exclusive, externally_managed, left_open, stable)
