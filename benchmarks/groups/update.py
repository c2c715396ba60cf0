"""`python -m benchmarks.groups.update`: groups whose Deployments are all updated at once.

Groups come until the nodes are as full as asked for; then each Deployment gets another template, as by `kubectl rollout
restart`. Its controller goes on as the real one does: so many pods more than there are to be, so many fewer that are
ready, and old pods keep their room until they have ended.

examples:
  python -m benchmarks.groups.update
  python -m benchmarks.groups.update --nodes 20 --fill 0.6 --surge 1 --unavailable 0 --seed 4
"""

from __future__ import annotations

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
from extender.scoring.predict import wanted
from extender.state.pods import Changes
from extender.state.told_groups import DEPLOYMENTS, ToldReplicas, ToldRow
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler

STEP_S = 0.02
"""Seconds in which kube-scheduler comes to PODS_IN_STEP pods and each controller once."""

PODS_IN_STEP = 2

PLANNED_EACH = 3
"""Steps between two rounds in which the extender plans where groups go."""

PATCHED_EACH = 4
"""Steps between two Deployments that are given another template."""

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
    "ms a plan",
)

KINDS = ("epyc-7763-nps2", "xeon-8480-snc4", "epyc-7742-nps1", "kunpeng-920-2s", "xeon-8380")

MOST_STEPS = 30_000


@dataclass(frozen=True)
class Pace:
    """surge, unavailable: as a Deployment's strategy has them, below 1 a share. ready_s: from a pod's binding until it
    is ready. ends_s: from its deletion until its room is free.
    """

    surge: float = 0.25
    unavailable: float = 0.25
    ready_s: float = 0.3
    ends_s: float = 1.0


@dataclass
class Rollout:
    """One Deployment. old, new: its pods of each template that are not being deleted; ready: those of them that are."""

    replicas: list[Replica]
    pace: Pace
    old: list[Replica] = field(default_factory=list)
    new: list[Replica] = field(default_factory=list)
    ready: set[Replica] = field(default_factory=set)
    made: int = 0

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
        fresh = [
            replace(self.replicas[0], revision=self.replicas[0].revision + 1, index=self.made + at)
            for at in range(count)
        ]
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
        rooms = {spec.name: Room(spec.allocatable_milli, spec.memory) for spec in specs}
        self._scheduler = Scheduler(rooms, self.played, random=Random(seed), percentage=100)
        self._queue, self._under_way = deque[Replica](), deque[tuple[Replica, str]]()
        self._due: list[tuple[float, str, Replica]] = []
        self.pending, self._changed = 0, set[str]()
        self.planning: list[float] = []
        self.rollouts: dict[str, Rollout] = {}

    def come(self, groups: Iterable[Instance], pace: Pace) -> None:
        replicas = [replica for group in groups for replica in group.replicas()]
        for replica in replicas:
            self.rollouts.setdefault(replica.workload, Rollout([], pace)).replicas.append(replica)
        self.played.cluster.told(DEPLOYMENTS, Changes(rows=tuple(map(_told, self.rollouts.values()))))
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
        waiting, whole = deque(self.rollouts.values()), []
        begun: list[Rollout] = []
        planned = -PLANNED_EACH
        for step in range(MOST_STEPS):
            self.played.now += STEP_S
            if step % PATCHED_EACH == 0 and waiting:
                begun.append(waiting.popleft())
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
            if not waiting and not self._due and all(rollout.done for rollout in self.rollouts.values()):
                break
        self._report()
        return fmean(whole)

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
            replica = self._queue.popleft()
            if self.played.cluster._ledger.awaits_plan(replica.uid):  # noqa: SLF001 - as the answer to kube-scheduler waits
                self._report()
                self.played.reserve()
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
    first = rollout.replicas[0]
    want = wanted(row(first))
    assert want is not None
    demand, ahead = (
        want.whole[0].reservation_demand,
        2 * (rollout.most - rollout.wanted) + rollout.wanted - rollout.least,
    )
    kept = ToldReplicas(first.workload, want.group, rollout.wanted, demand, ahead=ahead)
    return ToldRow(f"{first.namespace}/{first.service.name}", {}, kept)


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
    kube-scheduler found no room. plan_s: of CPU, for one plan.
    """

    groups: int
    before: Found
    after: Found
    whole: float
    pending: int
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
    return Told(len(there), before, after, whole, updated.pending, fmean(updated.planning))


def row_of(fill: float, seed: int, found: Told) -> list[str]:
    before, after = found.before, found.after
    stayed = sum(1 for group, home in after.homes.items() if before.homes[group] == home)
    return [
        f"{fill:.0%}", str(seed), str(found.groups), f"{before.nodes} / {after.nodes}",
        f"{before.numa_nodes} / {after.numa_nodes}", f"{before.fitting} / {after.fitting}", f"{found.whole:.2f}",
        str(stayed), str(found.pending), f"{1e3 * found.plan_s:.1f}",
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
    options = parser.parse_args()
    pace = Pace(options.surge, options.unavailable, options.ready, options.ends)
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
