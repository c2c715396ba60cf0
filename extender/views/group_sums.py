"""What groups' members add up to, carried on from one reading to the next: of each node only what has changed since is
looked at, so that reading costs the same however many pods there are.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from extender.scoring.node_table import NodeState
from extender.state.groups import Place, shared
from numakin.placement.state.allocations import as_one
from numakin.placement.state.occupancy import Occupancy, Reservation

NO_MEMBERS = Occupancy()


@dataclass(frozen=True)
class MemberSum:
    """Of a group's members. places: how many are in each; cpu_milli, memory: what all of them ask for."""

    places: Mapping[Place, int]
    count: int
    cpu_milli: int
    memory: int

    @cached_property
    def locality(self) -> float:
        return shared(self.places) or 0.0


@dataclass(slots=True)
class _Running:
    """The same of those that name one group, or of one workload. made: None after a change."""

    places: Counter[Place] = field(default_factory=Counter)
    count: int = 0
    cpu_milli: int = 0
    memory: int = 0
    made: MemberSum | None = None

    def add(self, node: str, reservation: Reservation, sign: int) -> None:
        """sign: 1 for one that comes, -1 for one that goes."""
        place = node, reservation.numa_nodes
        self.places[place] += sign
        if not self.places[place]:
            del self.places[place]
        self.count += sign
        self.cpu_milli += sign * reservation.demand.cpu_milli
        self.memory += sign * reservation.demand.memory
        self.made = None

    def sum(self) -> MemberSum:
        if self.made is None:
            self.made = MemberSum(dict(self.places), self.count, self.cpu_milli, self.memory)
        return self.made


class GroupSums:
    """One owner."""

    def __init__(self) -> None:
        self._nodes: dict[str, Occupancy] = {}
        self._running: defaultdict[str, _Running] = defaultdict(_Running)
        self._found: dict[str, tuple[tuple[MemberSum, ...], MemberSum]] = {}

    def read(self, nodes: Iterable[NodeState], groups: Mapping[str, str]) -> dict[str, MemberSum]:
        """By group. groups: by workload, of those whose pods name none."""
        now = {state.view.name: state.view.occupancy for state in nodes}
        for node in self._nodes.keys() | now.keys():
            before, after = self._nodes.get(node, NO_MEMBERS), now.get(node, NO_MEMBERS)
            if before.reservations is not after.reservations:
                self._changed(node, before, after)
        self._nodes = now
        named: dict[str, MemberSum] = {}
        parts: defaultdict[str, list[MemberSum]] = defaultdict(list)
        for name, running in self._running.items():
            if _is_workload(name):
                if group := groups.get(name):
                    parts[group].append(running.sum())
            else:
                named[name] = running.sum()
        for group, sums in parts.items():
            if group in named:
                sums.append(named[group])
        self._found = {group: self._together(group, tuple(sums)) for group, sums in parts.items()}
        return named | {group: whole for group, (_, whole) in self._found.items()}

    def _changed(self, node: str, before: Occupancy, after: Occupancy) -> None:
        pods: set[str] = set()
        for key in before.reservations.keys() | after.reservations.keys():
            old, new = before.reservations.get(key), after.reservations.get(key)
            if old is not new:
                pods |= {each.pod for each in (old, new) if each is not None}
        for pod in pods:
            for occupancy, sign in ((before, -1), (after, 1)):
                if there := occupancy.members_of(pod):
                    self._add(node, as_one(there), sign)

    def _add(self, node: str, pod: Reservation, sign: int) -> None:
        name = pod.group or pod.workload
        self._running[name].add(node, pod, sign)
        if not self._running[name].count:
            del self._running[name]

    def _together(self, group: str, sums: tuple[MemberSum, ...]) -> tuple[tuple[MemberSum, ...], MemberSum]:
        """What was put together before, where nothing of it has changed since."""
        before = self._found.get(group)
        if before is not None and len(before[0]) == len(sums) and all(map(operator.is_, before[0], sums)):
            return before
        places: Counter[Place] = Counter()
        for each in sums:
            places.update(each.places)
        count, cpu_milli = sum(each.count for each in sums), sum(each.cpu_milli for each in sums)
        return sums, MemberSum(places, count, cpu_milli, sum(each.memory for each in sums))


def _is_workload(name: str) -> bool:
    """NAMESPACE/KIND/NAME, and not NAMESPACE/GROUP; empty: neither is known."""
    return name.count("/") != 1
