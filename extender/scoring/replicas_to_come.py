"""What controllers have not created yet of each named group. Under the cluster's lock.

Of a controller whose object is watched it is what that says, less the pods that the API server has: all of its
workload's, whichever template they are of, but for those that are being deleted, so that a rolling update's are counted
once. Of any other it is what the group was a short while ago: a member that was deleted is expected to come again
while others of its workload are there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, TypeVar

from extender.planning.replica_counts import NOTHING, ReplicaCounts, counted
from extender.scoring.predict import opt_ins
from extender.state.pods import PodRow
from extender.state.templates import Templates
from extender.state.told_groups import ToldReplicas, ToldRow
from numakin.placement.model import demand as demands
from numakin.placement.model.errors import PlacementError

MOST_WORKLOADS = 256
"""Of one group whose replicas count: kube-scheduler's question goes through them."""

FORMER_S = 60.0
"""How long a member that was deleted is expected to come again."""

MOST_FORMER = 10_000
"""Members that were deleted and are remembered; the oldest go first."""

FOLLOW_S = 0.2
"""How long the plan of a group waits for the others of its controllers once the first of them has another template:
kubectl and Helm change one after the other, some 50 ms apart.
"""

ENDING = frozenset({"Job", "CronJob"})
"""Controllers whose pods end by themselves, and are not made again."""

_Key = tuple[str, str]
"""The kind and name of a controller's object."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class _Former:
    """A member that was deleted. at: seconds."""

    at: float
    was: ToldReplicas


class _ByWorkload(Generic[K]):
    """What is to come, by group and workload, each under a key; none of the tables is empty."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[K, ToldReplicas]]] = {}

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def of(self, group: str) -> Mapping[str, Mapping[K, ToldReplicas]]:
        return self._groups.get(group, {})

    def add(self, key: K, replicas: ToldReplicas) -> None:
        self._groups.setdefault(replicas.group, {}).setdefault(replicas.workload, {})[key] = replicas

    def drop(self, key: K, replicas: ToldReplicas) -> None:
        workloads = self._groups[replicas.group]
        del workloads[replicas.workload][key]
        if not workloads[replicas.workload]:
            del workloads[replicas.workload]
        if not workloads:
            del self._groups[replicas.group]


class ReplicasToCome:
    """counts: of the pods that the API server has."""

    def __init__(self) -> None:
        self.counts, self.templates = ReplicaCounts(), Templates()
        self._told: dict[_Key, ToldReplicas] = {}
        self._controllers: _ByWorkload[_Key] = _ByWorkload()
        self._former: dict[str, _Former] = {}
        """By uid, the oldest first."""
        self._former_of: _ByWorkload[str] = _ByWorkload()

    def told(self, kind: str, rows: Iterable[ToldRow], gone: Iterable[str], now: float, *, whole: bool) -> None:
        """As `Changes` has them, of one kind of controllers."""
        replicas = {(kind, row.name): self._since_before((kind, row.name), row.replicas) for row in rows}
        for key, kept in replicas.items():
            before = self._told.get(key)
            if kept is not None and before is not None and _renewed(before, kept):
                self.templates.announced(kept.workload, now)
        lost = {key for key in self._told if key[0] == kind} - replicas.keys() if whole else set[_Key]()
        for key in {*replicas, *((kind, name) for name in gone), *lost}:
            self._forget(key)
        for key, kept in replicas.items():
            if kept is not None:
                self._keep(key, kept)

    def pod_changed(self, before: PodRow | None, after: PodRow | None, now: float, *, created: bool = False) -> None:
        """None: the API server does not have it. created: as for `Templates.changed`."""
        self.counts.changed(before, after)
        self.forget_former(now)
        were, are = counted(before), counted(after)
        self.templates.changed(before, after, now, created=created)
        if were is None and after is not None and are is not None:
            self._came(after)
        elif were is not None and were[1] and are is None and before is not None:
            self._left(before, now)

    def forget_former(self, now: float) -> None:
        """Those that were deleted too long ago."""
        while self._former and now - next(iter(self._former.values())).at >= FORMER_S:
            self._drop_former(next(iter(self._former)))

    def of(self, group: str, *, beside: str = "") -> Iterator[ToldReplicas]:
        """By workload how many are to come. beside: the workload of a pod that the API server is about to show."""
        controllers = self._controllers.of(group)
        for workload, kept in islice(controllers.items(), MOST_WORKLOADS):
            some = next(iter(kept.values()))
            there = self.counts.total(workload) + (workload == beside)
            if (missing := sum(each.count for each in kept.values()) - there) > 0:
                yield self._still(some, missing)
        for workload, former in islice(self._former_of.of(group).items(), MOST_WORKLOADS):
            missing = len(former) - (workload == beside)
            if workload not in controllers and missing > 0 and self.counts.total(workload):
                yield self._still(next(iter(former.values())), missing)

    def _still(self, one: ToldReplicas, count: int) -> ToldReplicas:
        return replace(one, count=count, overhead=self.counts.beside.get(one.workload, NOTHING))

    def renews(self, group: str) -> bool:
        """Whether a controller is replacing pods of the group by others of another template."""
        return any(map(self.templates.replaces, islice(self._controllers.of(group), MOST_WORKLOADS)))

    def settles_at(self, group: str) -> float:
        """Until when others of its controllers may follow those that have begun to replace pods, the last and those
        just before it: one may have begun long ago, and get nowhere.
        """
        begun, others = [], False
        for workload, kept in islice(self._controllers.of(group).items(), MOST_WORKLOADS):
            if (since := self.templates.replaced_since(workload)) is not None:
                begun.append(since)
            else:
                others = others or any(each.template and not each.paused for each in kept.values())
        if not (begun and others):
            return -math.inf
        return min(since for since in begun if max(begun) - since < FOLLOW_S) + FOLLOW_S

    def kept(self, group: str, workload: str) -> ToldReplicas | None:
        """What controllers say of the workload; None: nothing."""
        kept = [*self._controllers.of(group).get(workload, {}).values()]
        return replace(kept[0], count=sum(each.count for each in kept)) if kept else None

    def milli(self, group: str, uses: Mapping[str, int], *, beside: str = "") -> int:
        """Millicores that all of them are expected to take. uses: of one pod, by workload. beside: as in `of`."""
        if group not in self._controllers and group not in self._former_of:
            return 0
        return sum(
            each.count * demands.counted(each.demand, uses.get(each.workload, 0)).expected_milli
            for each in self.of(group, beside=beside)
        )

    def copy(self) -> ReplicasToCome:
        """What changes there changes nothing here."""
        copied = ReplicasToCome()
        copied.counts, copied.templates = self.counts.copy(), self.templates.copy()
        for key, kept in self._told.items():
            copied._keep(key, kept)
        for uid, former in self._former.items():
            copied._remember(uid, former)
        return copied

    def _since_before(self, key: _Key, kept: ToldReplicas | None) -> ToldReplicas | None:
        """While it is paused its template is what it was: its pods are replaced once that ends."""
        before = self._told.get(key)
        return replace(kept, template=before.template) if kept and kept.paused and before else kept

    def _keep(self, key: _Key, replicas: ToldReplicas) -> None:
        self._told[key] = replicas
        self._controllers.add(key, replicas)

    def _forget(self, key: _Key) -> None:
        kept = self._told.pop(key, None)
        if kept is not None:
            self._controllers.drop(key, kept)

    def _came(self, row: PodRow) -> None:
        """In the place of one that was deleted, if any was."""
        if self._former:
            self._drop_former(next(iter(self._former_of.of(_group(row)).get(row.workload, ())), ""))

    def _left(self, row: PodRow, now: float) -> None:
        if not row.comes_again or row.owner is None or row.owner.kind in ENDING or not (group := _group(row)):
            return
        try:
            was = ToldReplicas(row.workload, group, 1, row.demand, not row.own_terms, row.terms, row.devices)
        except PlacementError:
            return
        self._remember(row.uid, _Former(now, was))

    def _remember(self, uid: str, former: _Former) -> None:
        self._drop_former(uid)
        self._former[uid] = former
        self._former_of.add(uid, former.was)
        if len(self._former) > MOST_FORMER:
            self._drop_former(next(iter(self._former)))

    def _drop_former(self, uid: str) -> None:
        former = self._former.pop(uid, None)
        if former is not None:
            self._former_of.drop(uid, former.was)


def _renewed(before: ToldReplicas, after: ToldReplicas) -> bool:
    return bool(before.template and after.template) and before.template != after.template


def _group(row: PodRow) -> str:
    """Empty: none that has a name."""
    opt_in = next(iter(opt_ins(row).values()), None)
    return opt_in.group if opt_in is not None else ""
