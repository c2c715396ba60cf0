"""Who is on a node, found by pod and by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from numakin.placement.state.occupancy import Occupancy, Reservation


@dataclass(frozen=True)
class NodeIndex:
    """Who is on a node, as it is asked for again and again; worked out when it is. Of expected occupancies assumed pods
    are a part, and those that have ended are none.
    """

    reported: Occupancy
    expected: Occupancy

    @property
    def pods(self) -> AbstractSet[str]:
        """The uids of all pods that the enforcer reported."""
        return self.reported.directory.by_pod.keys()

    @cached_property
    def members(self) -> tuple[Reservation, ...]:
        """The opted-in pods, each as one reservation."""
        return tuple(self.expected.whole_pods().values())

    @cached_property
    def member_pods(self) -> frozenset[str]:
        """Their uids."""
        return frozenset(reservation.pod for reservation in self.members)

    @cached_property
    def reported_members(self) -> frozenset[str]:
        """The uids of the opted-in pods that the enforcer reported."""
        shown = self.reported.reservations.values()
        return frozenset(reservation.pod for reservation in shown if reservation.opted_in)


NO_PODS: Mapping[str, tuple[str, ...]] = {}


def changed_members(before: Occupancy | None, after: Occupancy | None) -> Iterator[tuple[str, bool]]:
    """The uids of opted-in pods that came (True) or went (False); None: no node."""
    old = before.directory.by_pod if before is not None else NO_PODS
    new = after.directory.by_pod if after is not None else NO_PODS
    for uid in {uid for uid, _ in old.items() ^ new.items()}:
        was, stays = _is_member(before, old.get(uid, ())), _is_member(after, new.get(uid, ()))
        if was != stays:
            yield uid, stays


def changed_groups(before: Occupancy | None, after: Occupancy | None) -> Iterator[tuple[str, int, int]]:
    """The groups with more or fewer pods than before; how many before, and after."""
    old = before.directory.by_group if before is not None else NO_PODS
    new = after.directory.by_group if after is not None else NO_PODS
    for group in {group for group, _ in old.items() ^ new.items()}:
        yield group, _pods(before, group), _pods(after, group)


def _pods(occupancy: Occupancy | None, group: str) -> int:
    return sum(pods.get(group, 0) for pods in occupancy.directory.grouped.values()) if occupancy is not None else 0


def _is_member(occupancy: Occupancy | None, keys: tuple[str, ...]) -> bool:
    return occupancy is not None and any(occupancy.reservations[key].opted_in for key in keys)
