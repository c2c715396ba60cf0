"""The room that is held for groups of which pods wait for a node: at their places, against other groups, until they
have come or nothing of the group has moved for a while. Under the cluster's lock.

A hold is a plan's answer for each waiting pod. What is held on a node is what those of its pods ask for that are not
assumed there yet, since these hold their own room. It harms nobody: who may not take it is decided by `NodeTable`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from extender.state.columns.free_room import NumaPlace
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Reservation

GROWS_S = 2.0
"""How long a group counts as growing since a pod of it was created: controllers make them by and by."""

MISSED = 2
"""Pods of a group in a row that could not be where they were planned, for which nothing more is planned on that node.
"""


@dataclass(frozen=True, slots=True)
class HeldPod:
    """Of a waiting pod: its group, where it is planned, and what it takes there."""

    group: str
    place: NumaPlace
    demand: Demand


@dataclass(slots=True)
class _GroupHold:
    """uids: by node, of its planned pods. changes, created: as they were counted at moved_at and grew_at, seconds.
    lapsed: its room was given back, and nothing of it has moved since. barred: nodes where its pods could not go,
    missed: how often lately.
    """

    changes: int
    created: int
    moved_at: float
    grew_at: float
    priority: int = 0
    uids: dict[str, set[str]] = field(default_factory=dict)
    lapsed: bool = False
    barred: set[str] = field(default_factory=set)
    missed: int = 0


class GroupHolds:
    """given_back: how often room was given back for which nobody came."""

    def __init__(self) -> None:
        self._pods: dict[str, HeldPod] = {}
        self._groups: dict[str, _GroupHold] = {}
        self._on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._lowest = 0
        self.given_back = 0

    def place(self, uid: str) -> NumaPlace | None:
        held = self._pods.get(uid)
        return held.place if held is not None else None

    @property
    def any(self) -> bool:
        """Whether anything is planned."""
        return bool(self._pods)

    def nodes(self, group: str) -> Collection[str]:
        """Where something is planned for the group."""
        known = self._groups.get(group)
        return known.uids.keys() if known is not None else ()

    def yielding_to(self, group: str, priority: int) -> set[str]:
        """The groups whose holds do not count for a pod of this group, with this priority: its own, and those of lower
        priority.
        """
        own = {group} if group in self._groups else set()
        if priority <= self._lowest:
            return own
        return own | {name for name, known in self._groups.items() if known.priority < priority and known.uids}

    def barred(self, group: str) -> frozenset[str]:
        known = self._groups.get(group)
        return frozenset(known.barred) if known is not None else frozenset()

    def moving(self, changes: Mapping[str, int], created: Mapping[str, int], now: float, lasts_s: float) -> set[str]:
        """The groups of which something has moved lately: they are to be planned. changes, created: of all groups that
        wait, as `WaitingMembers` counts them.
        """
        for group, count in changes.items():
            known = self._groups.get(group)
            if known is None:
                self._groups[group] = _GroupHold(count, created[group], now, now)
                continue
            if known.changes != count:
                known.changes, known.moved_at, known.lapsed = count, now, False
            if known.created != created[group]:
                known.created, known.grew_at = created[group], now
        for group in self._groups.keys() - changes.keys():
            if not self._groups[group].uids:
                del self._groups[group]
        return {
            group for group in changes if not (known := self._groups[group]).lapsed and now - known.moved_at < lasts_s
        }

    def growing(self, now: float) -> set[str]:
        """The groups of which a pod was created a moment ago."""
        return {group for group, known in self._groups.items() if now - known.grew_at < GROWS_S}

    def plan(
        self,
        planned: Mapping[str, Mapping[str, NumaPlace]],
        demands: Mapping[str, Demand],
        priorities: Mapping[str, int],
    ) -> set[str]:
        """From now on it is this; nothing is held for groups that are not in it. The nodes where that is other than
        before. demands: of each planned pod.
        """
        touched: set[str] = set()
        for group in [*self._groups]:
            if group not in planned and self._groups[group].uids:
                touched |= self._drop(group)
                self._groups[group].lapsed = True
                self.given_back += 1
        for group, places in planned.items():
            known = self._groups.get(group)
            if known is None:
                continue
            known.priority = priorities.get(group, 0)
            before = {uid: self._pods[uid] for uids in known.uids.values() for uid in uids}
            after = {uid: HeldPod(group, place, demands[uid]) for uid, place in places.items()}
            if before == after:
                continue
            touched |= self._drop(group)
            for uid, held in after.items():
                self._pods[uid] = held
                known.uids.setdefault(held.place.node, set()).add(uid)
                self._on_node[held.place.node].add(group)
            touched |= known.uids.keys()
        self._lowest = min((known.priority for known in self._groups.values() if known.uids), default=0)
        return touched

    def gone(self, uid: str) -> str:
        """The pod is bound, or is no more: nothing is held for it. The node where it was planned; empty: nowhere."""
        held = self._pods.pop(uid, None)
        if held is None:
            return ""
        known, node = self._groups[held.group], held.place.node
        known.uids[node].discard(uid)
        if not known.uids[node]:
            del known.uids[node]
            self._on_node[node].discard(held.group)
        return node

    def missed(self, uid: str) -> str:
        """The pod can't be where it was planned, by what only kube-scheduler knows. As `gone`."""
        held = self._pods.get(uid)
        if held is None:
            return ""
        known = self._groups[held.group]
        known.missed += 1
        if known.missed >= MISSED:
            known.barred.add(held.place.node)
            known.missed = 0
        return self.gone(uid)

    def copy(self) -> GroupHolds:
        """What changes there changes nothing here."""
        copied = GroupHolds()
        copied._pods = self._pods.copy()
        copied._groups = {
            group: replace(known, uids={node: set(uids) for node, uids in known.uids.items()}, barred=set(known.barred))
            for group, known in self._groups.items()
        }
        for node, groups in self._on_node.items():
            copied._on_node[node] = set(groups)
        return copied

    def on(self, node: str, assumed: Callable[[str], bool]) -> dict[str, tuple[Reservation, ...]]:
        """What is held there, by group. assumed: whether a pod holds room of its own, by uid."""
        return {
            group: _reservations(
                group,
                (held for uid in self._groups[group].uids[node] if not assumed(uid) and (held := self._pods[uid])),
            )
            for group in sorted(self._on_node.get(node, ()))
        }

    def held(self, group: str, assumed: Callable[[str], bool]) -> dict[NumaPlace, Demand]:
        """What is held for a group, by place."""
        known = self._groups.get(group)
        sums: dict[NumaPlace, Demand] = {}
        for uids in known.uids.values() if known is not None else ():
            for uid in uids:
                if not assumed(uid):
                    held = self._pods[uid]
                    sums[held.place] = sums.get(held.place, Demand()) + held.demand
        return sums

    def held_milli(self, assumed: Callable[[str], bool]) -> int:
        """Of all groups."""
        return sum(held.demand.expected_milli for uid, held in self._pods.items() if not assumed(uid))

    def groups(self) -> list[str]:
        """For which something is planned."""
        return sorted(group for group, known in self._groups.items() if known.uids)

    def _drop(self, group: str) -> set[str]:
        known = self._groups[group]
        nodes = {*known.uids}
        for node, uids in known.uids.items():
            self._on_node[node].discard(group)
            for uid in uids:
                del self._pods[uid]
        known.uids = {}
        return nodes


def _reservations(group: str, pods: Iterable[HeldPod]) -> tuple[Reservation, ...]:
    """One for each NUMA node. They belong to no pod, so that nobody takes them for members."""
    sums: dict[int, Demand] = {}
    for pod in pods:
        sums[pod.place.numa_node] = sums.get(pod.place.numa_node, Demand()) + pod.demand
    return tuple(
        Reservation(f"held for {group} on {numa_node}", "", "", NumaSet.of((numa_node,)), demand)
        for numa_node, demand in sorted(sums.items())
    )
