"""The room that is held for groups of which pods wait for a node: at their places, against other groups, until they
have come or nothing of the group has moved for a while. Under the cluster's lock.

A hold is a plan's answer for each waiting pod. What is held on a node is what those of its pods ask for that are not
assumed there yet, since these hold their own room. It harms no pod: who may not take it is decided by `NodeTable`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from extender.state.columns.free_room import NumaPlace
from extender.state.node_view import HeldReservation
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.live_usage import Devices

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
    devices: Devices = ()


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """What is to be held. places: of waiting pods, by group and uid; demands, devices: of each of these. members: the
    nodes where each group had some when it was planned, homes: the NUMA nodes. to_come: by group and workload, the
    places of pods that were not created by then. unsettled: as `GroupHolds` has it.
    """

    places: Mapping[str, Mapping[str, NumaPlace]]
    demands: Mapping[str, Demand]
    priorities: Mapping[str, int] = field(default_factory=dict)
    members: Mapping[str, Collection[str]] = field(default_factory=dict)
    to_come: Mapping[str, Mapping[str, Sequence[NumaPlace]]] = field(default_factory=dict)
    devices: Mapping[str, Devices] = field(default_factory=dict)
    homes: Mapping[str, Collection[NumaPlace]] = field(default_factory=dict)
    unsettled: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class PromisedRoom:
    """Room for the pod that is to come in the place of one that is evicted. gone: the uid of the latter. holder: in
    whose name it is held, the newcomer's uid once that is known.
    """

    gone: str
    workload: str
    place: NumaPlace
    demand: Demand
    holder: str

    @property
    def claimed(self) -> bool:
        return not self.holder.startswith(_UNCLAIMED)


_UNCLAIMED = "in place of "


def in_place_of(uid: str) -> str:
    """In whose name room is held for a newcomer that is not known yet."""
    return _UNCLAIMED + uid


@dataclass(slots=True)
class _GroupHold:
    """uids: by node, of its planned pods. changes, created: as they were counted at moved_at and grew_at, seconds.
    lapsed: its room was given back, and nothing of it has moved since. barred: nodes where its pods could not go,
    missed: how often lately. foreseen: the nodes that the plan has it on, with those where it was already; homes:
    likewise, the NUMA nodes. to_come: by workload, the places of pods that were not created yet.
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
    foreseen: frozenset[str] = frozenset()
    homes: frozenset[NumaPlace] = frozenset()
    to_come: dict[str, list[NumaPlace]] = field(default_factory=dict)


class GroupHolds:
    """given_back: how often room was given back for which no pod came. unsettled: the groups that are to be planned as
    if they had not been, since it was not known what of them was about to be replaced.
    """

    def __init__(self) -> None:
        self.unsettled: Collection[str] = ()
        self._pods: dict[str, HeldPod] = {}
        self._groups: dict[str, _GroupHold] = {}
        self._on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._promises: dict[str, PromisedRoom] = {}
        self._lowest = 0
        self.given_back = 0

    def place(self, uid: str) -> NumaPlace | None:
        held = self._pods.get(uid)
        return held.place if held is not None else None

    def places_to_come(self, group: str) -> Mapping[str, Sequence[NumaPlace]]:
        """By workload, those of the group's pods that are not created yet."""
        known = self._groups.get(group)
        return {workload: tuple(places) for workload, places in known.to_come.items()} if known is not None else {}

    def promised(self, uid: str) -> NumaPlace | None:
        """Where the pod comes in the place of one that was evicted for it."""
        return next((promise.place for promise in self._promises.values() if promise.holder == uid), None)

    def promise_to(self, group: str) -> PromisedRoom | None:
        return self._promises.get(group)

    def unclaimed(self) -> list[tuple[str, PromisedRoom]]:
        """By group, of which the newcomer is not known yet."""
        return [(group, promise) for group, promise in self._promises.items() if not promise.claimed]

    @property
    def any(self) -> bool:
        """Whether anything is planned."""
        return bool(self._pods)

    def nodes(self, group: str) -> Collection[str]:
        """Where something is planned for the group."""
        known = self._groups.get(group)
        return known.uids.keys() if known is not None else ()

    def foreseen(self, group: str) -> frozenset[str]:
        """The nodes that the group's plan has it on, those included whose pods have come."""
        known = self._groups.get(group)
        return known.foreseen if known is not None else frozenset()

    def homes(self, group: str) -> frozenset[NumaPlace]:
        """As `foreseen`, the NUMA nodes."""
        known = self._groups.get(group)
        return known.homes if known is not None else frozenset()

    def together(self, group: str) -> bool:
        """Whether all that is planned of the group is on one NUMA node, those included that are not created yet."""
        known = self._groups.get(group)
        if known is None:
            return False
        waiting = {self._pods[uid].place for uid in chain.from_iterable(known.uids.values())}
        return len(waiting.union(*known.to_come.values())) == 1

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

    def moving(
        self,
        changes: Mapping[str, int],
        created: Mapping[str, int],
        now: float,
        lasts_s: float,
        to_come: Callable[[str], bool] = lambda _group: False,
    ) -> set[str]:
        """The groups of which something has moved lately: they are to be planned. changes, created: of all groups that
        wait, as `WaitingMembers` counts them. to_come: whether pods of a group are not created yet, which goes on
        though none waits at the moment.
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
        lasting = {
            group for group, known in self._groups.items() if not known.lapsed and now - known.moved_at < lasts_s
        }
        for group in self._groups.keys() - changes.keys():
            known = self._groups[group]
            if group in lasting and to_come(group):
                known.changes = known.created = 0
            else:
                lasting.discard(group)
                if not known.uids:
                    del self._groups[group]
        return lasting

    def growing(self, now: float) -> set[str]:
        """The groups of which a pod was created a moment ago."""
        return {group for group, known in self._groups.items() if now - known.grew_at < GROWS_S}

    def plan(self, plan: HeldPlan) -> set[str]:
        """From now on it is this; nothing is held for groups that are not in it. The nodes where that is other than
        before.
        """
        touched: set[str] = set()
        self.unsettled = plan.unsettled
        planned, demands = {**plan.places}, plan.demands
        for group, promise in self._promises.items():
            planned[group] = {**planned.get(group, {}), promise.holder: promise.place}
            demands = {**demands, promise.holder: promise.demand}
        for group in [*self._groups]:
            if group not in planned and self._groups[group].uids:
                touched |= self._drop(group)
                self._groups[group].lapsed = True
                self.given_back += 1
        for group, places in planned.items():
            known = self._groups.get(group)
            if known is None:
                continue
            known.priority = plan.priorities.get(group, known.priority if group in self._promises else 0)
            later = {workload: list(there) for workload, there in plan.to_come.get(group, {}).items()}
            everywhere = frozenset(chain(places.values(), *later.values()))
            known.foreseen = frozenset(place.node for place in everywhere) | {*plan.members.get(group, ())}
            known.homes = everywhere.union(plan.homes.get(group, ()))
            before = {uid: self._pods[uid] for uids in known.uids.values() for uid in uids}
            devices = plan.devices
            after = {uid: HeldPod(group, place, demands[uid], devices.get(uid, ())) for uid, place in places.items()}
            if before != after:
                touched |= self._drop(group)
                for uid, held in after.items():
                    self._add(group, uid, held)
                touched |= known.uids.keys()
            known.to_come = later
        self._lowest = min((known.priority for known in self._groups.values() if known.uids), default=0)
        return touched

    def came(
        self,
        uid: str,
        group: str,
        workload: str,
        demand: Demand,
        may_go: Callable[[str], bool],
        *,
        devices: Devices = (),
    ) -> str:
        """The pod was created: the next place of its workload that was planned for those to come, where it may go, is
        its own. The node; empty: there is none, or it has one already.
        """
        known = self._groups.get(group)
        places = known.to_come.get(workload, []) if known is not None else []
        place = next((place for place in places if may_go(place.node)), None)
        if place is None or uid in self._pods:
            return ""
        places.remove(place)
        self._add(group, uid, HeldPod(group, place, demand, devices))
        return place.node

    def promise(self, group: str, promise: PromisedRoom, priority: int) -> set[str]:
        """From now on room is held there beside what is planned. The nodes where that changes something."""
        before = self._promises.get(group)
        if before is not None and (before.gone, before.place) == (promise.gone, promise.place):
            return set()
        touched = self.withdraw(group)
        known = self._groups.setdefault(group, _GroupHold(0, 0, -math.inf, -math.inf, priority))
        known.priority = priority if not known.uids else known.priority
        self._promises[group] = promise
        self._add(group, promise.holder, HeldPod(group, promise.place, promise.demand))
        self._lowest = min(self._lowest, known.priority)
        return touched | {promise.place.node}

    def claim(self, group: str, uid: str) -> set[str]:
        """The waiting pod is the newcomer. As `promise`."""
        promise = self._promises[group]
        touched = {self.gone(uid), promise.place.node} - {""}
        self._remove(promise.holder)
        self._promises[group] = replace(promise, holder=uid)
        self._add(group, uid, HeldPod(group, promise.place, promise.demand))
        return touched

    def withdraw(self, group: str) -> set[str]:
        """Gives back what is promised: no pod comes any more. The nodes where that changes something."""
        promise = self._promises.get(group)
        return {self.gone(promise.holder)} - {""} if promise is not None else set()

    def gone(self, uid: str) -> str:
        """The pod is bound, or is no more: nothing is held for it. The node where it was planned; empty: nowhere."""
        held = self._pods.get(uid)
        if held is None:
            return ""
        promise = self._promises.get(held.group)
        if promise is not None and promise.holder == uid:
            del self._promises[held.group]
        self._remove(uid)
        return held.place.node

    def exchange(self, uid: str, other: str) -> None:
        """They take each other's place."""
        one, two = self._pods[uid], self._pods[other]
        for pod in (uid, other):
            self._remove(pod)
        self._add(one.group, uid, replace(one, place=two.place))
        self._add(two.group, other, replace(two, place=one.place))

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
            group: replace(
                known,
                uids={node: set(uids) for node, uids in known.uids.items()},
                barred=set(known.barred),
                to_come={workload: list(places) for workload, places in known.to_come.items()},
            )
            for group, known in self._groups.items()
        }
        copied._promises, copied.unsettled, copied._lowest = dict(self._promises), self.unsettled, self._lowest
        for node, groups in self._on_node.items():
            copied._on_node[node] = set(groups)
        return copied

    def on(
        self, node: str, assumed: Callable[[str], bool], but: Collection[str] = ()
    ) -> dict[str, tuple[HeldReservation, ...]]:
        """What is held there, by group, other than these. assumed: whether a pod holds room of its own, by uid."""
        return {
            group: _reservations(group, [self._pods[uid] for uid in self._groups[group].uids[node] if not assumed(uid)])
            for group in sorted(self._on_node.get(node, ()))
            if group not in but
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

    def nodes_of(self, assumed: Callable[[str], bool]) -> Iterator[str]:
        """The node of each pod that something is held for. assumed: as for `on`."""
        return (held.place.node for uid, held in self._pods.items() if not assumed(uid))

    def held_milli(self, assumed: Callable[[str], bool]) -> int:
        """Of all groups."""
        return sum(held.demand.expected_milli for uid, held in self._pods.items() if not assumed(uid))

    def groups(self) -> list[str]:
        """For which something is planned."""
        return sorted(group for group, known in self._groups.items() if known.uids)

    def _add(self, group: str, uid: str, held: HeldPod) -> None:
        self._pods[uid] = held
        self._groups[group].uids.setdefault(held.place.node, set()).add(uid)
        self._on_node[held.place.node].add(group)

    def _remove(self, uid: str) -> None:
        held = self._pods.pop(uid)
        known, node = self._groups[held.group], held.place.node
        known.uids[node].discard(uid)
        if not known.uids[node]:
            del known.uids[node]
            self._on_node[node].discard(held.group)

    def _drop(self, group: str) -> set[str]:
        known = self._groups[group]
        nodes = {*known.uids}
        for node, uids in known.uids.items():
            self._on_node[node].discard(group)
            for uid in uids:
                del self._pods[uid]
        known.uids, known.to_come = {}, {}
        return nodes


def _reservations(group: str, pods: Iterable[HeldPod]) -> tuple[HeldReservation, ...]:
    """One for each NUMA node. They belong to no pod, so that nothing takes them for members."""
    alike: dict[tuple[int, int], list[Demand]] = {}
    devices: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        alike.setdefault((pod.place.numa_node, id(pod.demand)), []).append(pod.demand)
        for resource, count in pod.devices:
            devices[pod.place.numa_node][resource] += count
    sums: dict[int, Demand] = {}
    for (numa_node, _), demands in alike.items():
        sums[numa_node] = sums.get(numa_node, Demand()) + demands[0].times(len(demands))
    return tuple(
        HeldReservation(
            f"held for {group} on {numa_node}",
            "",
            "",
            NumaSet.of((numa_node,)),
            demand,
            devices=tuple(sorted(devices[numa_node].items())) if numa_node in devices else (),
        )
        for numa_node, demand in sorted(sums.items())
    )
