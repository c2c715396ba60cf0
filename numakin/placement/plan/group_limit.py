"""No more of a group than its share is moved at a time: which steps that leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil

from numakin.placement.plan.chains import Ways
from numakin.placement.state.occupancy import Occupancy


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """groups: of the reservations, by key; one whose group no annotation names counts with its workload's replicas.
    left: how many members of each may still be moved now.
    """

    groups: Mapping[str, str]
    left: Mapping[str, int]

    @classmethod
    def of(cls, occupancy: Occupancy, share: float, moved: Iterable[str]) -> GroupLimit:
        """share: of a group's members that are here, rounded up. moved: keys of the reservations that were lately."""
        every = {uid: pod.group or pod.workload for uid, pod in occupancy.whole_pods().items()}
        groups = {key: group for key, group in every.items() if group}
        lately = Counter(groups[key] for key in moved if key in groups)
        sizes = Counter(groups.values())
        return cls(groups, {group: ceil(share * size) - lately[group] for group, size in sizes.items()})

    def allows(self, members: Iterable[str]) -> bool:
        """Whether these may move together."""
        return all(count <= self.left[group] for group, count in self._counted(members).items())

    def after(self, members: Iterable[str]) -> GroupLimit:
        """What is left when these have moved too."""
        counts = self._counted(members)
        return replace(self, left={group: left - counts[group] for group, left in self.left.items()})

    def _counted(self, members: Iterable[str]) -> Counter[str]:
        return Counter(self.groups[key] for key in members if key in self.groups)


@dataclass(frozen=True, slots=True)
class NotToBeTaken:
    """Steps that were declined, that have a way in them which is never to be taken, or are over the limit."""

    declined: Collection[Ways]
    never: Ways
    limit: GroupLimit

    def __contains__(self, step: object) -> bool:
        return isinstance(step, frozenset) and (
            step in self.declined
            or not self.never.isdisjoint(step)
            or not self.limit.allows(reservation for reservation, _, _ in step)
        )
