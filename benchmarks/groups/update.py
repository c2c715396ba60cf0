"""`python -m benchmarks.groups.update`: groups whose Deployments are all updated.

Groups come until the nodes are as full as asked for; then each Deployment gets another template, one after the other
as by `kubectl rollout restart`. Its controller goes on as the real one does: so many pods more than there are to be, so
many fewer that are ready, and old pods keep their room until they have ended.

examples:
  python -m benchmarks.groups.update
  python -m benchmarks.groups.update --deployments 3 --apart 0.5
  python -m benchmarks.groups.update --deployments 3 --updated 1
  python -m benchmarks.groups.update --nodes 20 --fill 0.6 --surge 1 --unavailable 0 --seed 4
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Instance, Replica
from benchmarks.cluster.nodes.population import NodeSpec
from benchmarks.graphs.app import app
from benchmarks.groups import best, drawn
from benchmarks.groups.command import quiet_parser
from benchmarks.groups.play import PENDING, UNSEEN, Places, Played, row
from extender.kube.objects import told_kinds
from extender.state.pods import Changes
from extender.state.told_groups import DEPLOYMENTS, ToldRow
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler

STEP_S = 0.02
"""Seconds in which kube-scheduler comes to PODS_IN_STEP pods and each controller once."""

PODS_IN_STEP = 2

PLANNED_EACH = 3
"""Steps between two rounds in which the extender plans where groups go."""

PATIENCE_S = 0.25
"""How long kube-scheduler waits at most for a plan that has counted the pod it asks about."""

MILLI = (250, 500, 1000, 1500)
"""What the pods of a group ask for each."""

COLUMNS = (
    "full",
    "seed",
    "groups",
    "on several nodes",
    "NUMA nodes",
    "of these that fit",
    "whole meanwhile",
    "same home",
    "pending",
    "s waited",
    "ms a plan",
)

KINDS = ("epyc-7763-nps2", "xeon-8480-snc4", "epyc-7742-nps1", "kunpeng-920-2s", "xeon-8380")

MOST_STEPS = 30_000

_READER = next(kind.resource() for kind in told_kinds.KINDS if kind.kind == DEPLOYMENTS)


@dataclass(frozen=True)
class Pace:
    """surge, unavailable: as a Deployment's strategy has them, below 1 a share. ready_s: from a pod's binding until it
    is ready. ends_s: from its deletion until its room is free. apart_s: between two Deployments that are given another
    template, as by kubectl, one after the other. updated: of each group the first so many; 0: all.
    """

    surge: float = 0.25
    unavailable: float = 0.25
    ready_s: float = 0.3
    ends_s: float = 1.0
    apart_s: float = 0.08
    updated: int = 0


@dataclass
class Rollout:
    """One Deployment. old, new: its pods of each template that are not being deleted; ready: those of them that are."""

    replicas: list[Replica]
    pace: Pace
    old: list[Replica] = field(default_factory=list)
    new: list[Replica] = field(default_factory=list)
    ready: set[Replica] = field(default_factory=set)
    made: int = 0
    revision: int = 1

    @property
    def wanted(self) -> int:
        return len(self.replicas)

    @property
    def most(self) -> int:
        surge = self.pace.surge
        return self.wanted + (math.ceil(surge * self.wanted) if surge < 1 else int(surge))

    @property
    def least(self) -> int:
        unavailable = self.pace.unavailable
        down = int(unavailable * self.wanted) if unavailable < 1 else int(unavailable)
        return self.wanted - (down or int(self.most == self.wanted))

    @property
    def done(self) -> bool:
        return not self.old and len(self.new) == self.wanted and self.ready.issuperset(self.new)

    def created(self) -> list[Replica]:
        """As many new pods as there may be."""
        count = min(self.wanted - len(self.new), self.most - len(self.old) - len(self.new))
        fresh = [replace(self.replicas[0], revision=self.revision, index=self.made + at) for at in range(count)]
        self.made += len(fresh)
        self.new += fresh
        return fresh

    def deleted(self) -> list[Replica]:
        """As many old pods as may go by now."""
        available = sum(1 for pod in (*self.old, *self.new) if pod in self.ready)
        gone = self.old[: max(0, min(len(self.old), available - self.least))]
        self.old = self.old[len(gone) :]
        return gone


class Updated:
    """Groups on played nodes, placed once and then updated."""

    def __init__(self, specs: Sequence[NodeSpec], seed: int) -> None:
        self.specs, self.played = specs, Played(specs)
        rooms = {spec.name: spec.room for spec in specs}
        self._scheduler = Scheduler(rooms, self.played, random=Random(seed), percentage=100)
        self._queue, self._under_way = deque[Replica](), deque[tuple[Replica, str]]()
        self._due: list[tuple[float, str, Replica]] = []
        self.pending, self._changed = 0, set[str]()
        self.planning: list[float] = []
        self.rollouts: dict[str, Rollout] = {}
        self._waits: tuple[str, float] = ("", 0.0)
        self.waited_s = 0.0

    def come(self, groups: Iterable[Instance], pace: Pace) -> None:
        replicas = [replica for group in groups for replica in group.replicas()]
        for replica in replicas:
            self.rollouts.setdefault(replica.workload, Rollout([], pace)).replicas.append(replica)
        self._tell(self.rollouts.values())
        self.played.create(replicas)
        self.played.now += 5.0
        self.played.reserve()
        self._queue.extend(replicas)
        while self._queue or self._under_way:
            self._scheduled(len(self._queue))
        for rollout in self.rollouts.values():
            rollout.old = [pod for pod in rollout.replicas if self.played.places[pod] != PENDING]
            rollout.ready = {*rollout.old}
        self._report()
        self.played.now += 100.0

    def update(self) -> float:
        """Until only new pods are there. How large a share of the groups was on one node meanwhile."""
        waiting, whole = deque(self._to_update()), []
        begun: list[Rollout] = []
        planned, began_s, patched = -PLANNED_EACH, self.played.now, 0
        for step in range(MOST_STEPS):
            self.played.now += STEP_S
            if waiting and self.played.now - began_s >= patched * waiting[0].pace.apart_s:
                begun.append(self._patched(waiting.popleft()))
                patched += 1
            self._happened()
            if step >= planned + PLANNED_EACH and self._queue:
                self._report()
                began = time.process_time()
                self.played.reserve()
                self.planning.append(time.process_time() - began)
                planned = step
            self._scheduled(PODS_IN_STEP)
            self._controlled(begun)
            if step % 50 == 0:
                whole.append(self.whole())
            if not waiting and not self._due and all(rollout.done for rollout in begun):
                break
        self._report()
        return fmean(whole)

    def _to_update(self) -> Iterable[Rollout]:
        before = Counter[Instance]()
        for rollout in self.rollouts.values():
            group = rollout.replicas[0].instance
            if not rollout.pace.updated or before[group] < rollout.pace.updated:
                before[group] += 1
                yield rollout

    def _patched(self, rollout: Rollout) -> Rollout:
        rollout.revision += 1
        self._tell([rollout])
        return rollout

    def _tell(self, rollouts: Iterable[Rollout]) -> None:
        self.played.cluster.told(DEPLOYMENTS, Changes(rows=tuple(map(_told, rollouts))))

    def whole(self) -> float:
        nodes: dict[Instance, set[str]] = {}
        for replica, (node, _) in self.played.places.items():
            if node:
                nodes.setdefault(replica.instance, set()).add(node)
        return fmean(len(there) == 1 for there in nodes.values())

    def _controlled(self, rollouts: Iterable[Rollout]) -> None:
        for rollout in rollouts:
            if fresh := rollout.created():
                self.played.cluster.apply_pods(Changes(rows=tuple(map(row, fresh))))
                self._queue.extend(fresh)
            for replica in rollout.deleted():
                node, _ = self.played.places[replica]
                leaving = replace(row(replica), node=node, phase="Running", leaving=True)
                self.played.cluster.apply_pods(Changes(rows=(leaving,)))
                self._due.append((self.played.now + rollout.pace.ends_s, "ended", replica))

    def _scheduled(self, most: int) -> None:
        for _ in range(min(most, len(self._queue))):
            if self._awaits_plan(self._queue[0]):
                break
            replica = self._queue.popleft()
            want = Room(replica.cpu_milli, replica.memory)
            try:
                choice = self._scheduler.schedule({"row": row(replica)}, replica.workload, want)
            except DoesNotFitError:
                self.pending += 1
                self.played.places[replica] = PENDING
                self._due.append((self.played.now + 1.0, "again", replica))
                continue
            self._under_way.append((replica, choice.node))
            if len(self._under_way) > UNSEEN:
                self._bound(*self._under_way.popleft())
        if not self._queue:
            while self._under_way:
                self._bound(*self._under_way.popleft())

    def _awaits_plan(self, replica: Replica) -> bool:
        """As the answer to kube-scheduler waits, which asks about no other pod meanwhile."""
        awaits = self.played.cluster._ledger.awaits_plan  # noqa: SLF001
        if awaits(replica.uid):
            self._report()
            self.played.reserve()
        now = self.played.now
        if self._waits[0] != replica.uid:
            self._waits = replica.uid, now
        waits = awaits(replica.uid) and now - self._waits[1] < PATIENCE_S
        self.waited_s += STEP_S * waits
        return waits

    def _bound(self, replica: Replica, node: str) -> None:
        self.played.bind(replica, node)
        self._changed.add(node)
        self._due.append((self.played.now + self.rollouts[replica.workload].pace.ready_s, "ready", replica))

    def _happened(self) -> None:
        now = self.played.now
        due, self._due = [each for each in self._due if each[0] <= now], [each for each in self._due if each[0] > now]
        for _, what, replica in due:
            if what == "ready":
                self.rollouts[replica.workload].ready.add(replica)
                running = replace(row(replica), node=self.played.places[replica][0], phase="Running")
                self.played.cluster.apply_pods(Changes(rows=(running,)))
            elif what == "again":
                self._queue.append(replica)
            else:
                self._ended(replica)

    def _ended(self, replica: Replica) -> None:
        node, _ = self.played.places.pop(replica)
        self._scheduler.forget(node, replica.workload, Room(replica.cpu_milli, replica.memory))
        there, uid = self.played.reported[node], replica.uid
        gone = {key: None for key, held in there.reservations.items() if held.pod == uid}
        self.played.reported[node] = there.changed(reservations=gone)
        self._changed.add(node)
        self.played.cluster.apply_pods(Changes(gone=(uid,)))

    def _report(self) -> None:
        for node in self._changed:
            self.played.report(node)
        self._changed.clear()


def _told(rollout: Rollout) -> ToldRow:
    """As the API server sends the Deployment."""
    first, pace = rollout.replicas[0], rollout.pace
    annotations = {**first.annotations, "kubectl.kubernetes.io/restartedAt": str(rollout.revision)}
    rolling = {"maxSurge": _of_replicas(pace.surge), "maxUnavailable": _of_replicas(pace.unavailable)}
    spec = {
        "replicas": rollout.wanted,
        "template": {"metadata": {"annotations": annotations}, "spec": first.body()["spec"]},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    metadata = {"namespace": first.namespace, "name": first.service.name}
    told = _READER.row(json.dumps({"metadata": metadata, "spec": spec}).encode())
    assert told is not None
    return told


def _of_replicas(number: float) -> int | str:
    return f"{number:.0%}" if number < 1 else int(number)


def groups(specs: Sequence[NodeSpec], fill: float, deployments: int, random: Random) -> list[Instance]:
    """Of 5 to 40 pods of so many Deployments, as many as ask for this share of the CPUs that are free."""
    left = fill * sum(spec.allocatable_milli for spec in specs)
    found: list[Instance] = []
    while left > 0:
        pods, milli = random.randint(*drawn.PODS), random.choice(MILLI)
        parts = [len(range(at, pods, deployments)) for at in range(deployments)]
        services = [(f"s{at}", milli, part) for at, part in enumerate(parts)]
        found.append(Instance(f"team-{len(found):03}", app("updated", services, [("s0", services[-1][0], 100.0)])))
        left -= best.need(found[-1])
    return found


@dataclass(frozen=True)
class Found:
    """Of groups: the NUMA node where most of each is; how many are on several nodes, on several NUMA nodes, and of the
    latter those that one would hold as all others are.
    """

    homes: Mapping[Instance, tuple[str, str]]
    nodes: int
    numa_nodes: int
    fitting: int

    @classmethod
    def of(cls, specs: Sequence[NodeSpec], there: Sequence[Instance], places: Places) -> Found:
        here: dict[Instance, Counter[tuple[str, str]]] = {group: Counter() for group in there}
        free = {(node, str(numa_node)): room for (node, numa_node), room in best.free_room(specs).items()}
        for replica, place in places.items():
            here[replica.instance][place] += replica.cpu_milli
            free[place] = free.get(place, 0) - replica.cpu_milli
        cut = [group for group, mine in here.items() if len(mine) > 1]
        return cls(
            {group: mine.most_common(1)[0][0] for group, mine in here.items()},
            sum(1 for group in cut if len({node for node, _ in here[group]}) > 1),
            len(cut),
            sum(1 for group in cut if any(room + here[group][at] >= best.need(group) for at, room in free.items())),
        )


@dataclass(frozen=True)
class Told:
    """before, after: the update. whole: the mean share of groups that were on one node meanwhile. pending: how often
    kube-scheduler found no room. waited_s: for plans, in all. plan_s: of CPU, for one plan.
    """

    groups: int
    before: Found
    after: Found
    whole: float
    pending: int
    waited_s: float
    plan_s: float


def told(nodes: int, fill: float, deployments: int, pace: Pace, seed: int) -> Told:
    random = Random(seed)
    specs = [NodeSpec(f"node-{at}", KINDS[at % len(KINDS)], ()) for at in range(nodes)]
    there = groups(specs, fill, deployments, random)
    updated = Updated(specs, seed)
    updated.come(there, pace)
    before = Found.of(specs, there, updated.played.places)
    whole = updated.update()
    after = Found.of(specs, there, updated.played.places)
    return Told(len(there), before, after, whole, updated.pending, updated.waited_s, fmean(updated.planning))


def row_of(fill: float, seed: int, found: Told) -> list[str]:
    before, after = found.before, found.after
    stayed = sum(1 for group, home in after.homes.items() if before.homes[group] == home)
    return [
        f"{fill:.0%}", str(seed), str(found.groups), f"{before.nodes} / {after.nodes}",
        f"{before.numa_nodes} / {after.numa_nodes}", f"{before.fitting} / {after.fitting}", f"{found.whole:.2f}",
        str(stayed), str(found.pending), f"{found.waited_s:.1f}", f"{1e3 * found.plan_s:.1f}",
    ]  # fmt: skip


def main() -> int:
    parser = quiet_parser("benchmarks.groups.update", __doc__)
    parser.add_argument("--nodes", type=int, default=10, help="(default: 10)")
    parser.add_argument("--fill", type=float, action="append", help="share of the CPUs (default: 0.3 and 0.5)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    parser.add_argument("--deployments", type=int, default=1, help="of each group (default: 1)")
    parser.add_argument("--surge", type=float, default=0.25, help="pods more, below 1 a share (default: 0.25)")
    parser.add_argument("--unavailable", type=float, default=0.25, help="pods fewer (default: 0.25)")
    parser.add_argument("--ready", type=float, default=0.3, help="seconds until a pod is ready (default: 0.3)")
    parser.add_argument("--ends", type=float, default=1.0, help="seconds until a pod has ended (default: 1)")
    parser.add_argument(
        "--apart", type=float, default=0.08, help="seconds from Deployment to Deployment (default: 0.08)"
    )
    parser.add_argument(
        "--updated", type=int, default=0, help="Deployments of each group, the first ones (default: all)"
    )
    options = parser.parse_args()
    pace = Pace(options.surge, options.unavailable, options.ready, options.ends, options.apart, options.updated)
    table = Table(title="before / after an update of all", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for fill in options.fill or [0.3, 0.5]:
        for seed in options.seed or [1, 2, 3]:
            found = told(options.nodes, fill, options.deployments, pace, seed)
            table.add_row(*row_of(fill, seed, found))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
