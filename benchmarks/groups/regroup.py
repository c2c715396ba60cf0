"""`python -m benchmarks.groups.regroup`: groups that were cut when the cluster was full, after others have ended.

Groups come one after another until the nodes are nearly full, so that some are cut; then a part of them ends. The
extender looks for groups that could be together, and each step is carried out as an eviction: the pod is gone, its
controller creates another, kube-scheduler places that by its own scores and the extender's. Nothing is held for it, so
that what is seen is what the scores alone make of a plan.

examples:
  python -m benchmarks.groups.regroup
  python -m benchmarks.groups.regroup --nodes 100 --fill 0.95 --ended 0.3 --seed 4
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Instance, Replica, locality
from benchmarks.cluster.nodes.population import NodeSpec, population
from benchmarks.groups import best, drawn
from benchmarks.groups.command import quiet_parser
from benchmarks.groups.play import PENDING, POD_S, Played, row
from extender.planning.regrouping import RegroupStep
from extender.state.pods import Changes
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.scheduler import DoesNotFitError, Scheduler

ROUNDS = 20

ANEW = 1000
"""Added to a replica's index, where another is created for it."""


@dataclass(frozen=True)
class Told:
    """Of the groups that are left. whole: on one node; possible: on one NUMA node, as many as the best known has there.
    locality, reached: before and after, as shares of the best known. milli_s: of one search.
    """

    groups: int
    pods: int
    whole: int
    after: int
    possible: int
    restarts: int
    as_planned: int
    locality: float
    reached: float
    milli_s: float


class Lived:
    """Groups that come and go on played nodes."""

    def __init__(self, specs: Sequence[NodeSpec], seed: int) -> None:
        self.specs, self.played = specs, Played(specs)
        rooms = {spec.name: spec.room for spec in specs}
        self._scheduler = Scheduler(rooms, self.played, random=Random(seed), percentage=100)
        self._searches: list[float] = []

    def come(self, group: Instance) -> bool:
        """Whether all of it found room; else it is gone again."""
        replicas = group.replicas()
        self.played.create(replicas)
        self.played.now += 5.0
        self.played.reserve()
        placed = all(self._schedule(replica) for replica in replicas)
        if not placed:
            self.end(replicas)
        self._report()
        return placed

    def end(self, replicas: Sequence[Replica]) -> None:
        """They are deleted, and their nodes have taken their containers down."""
        for replica in replicas:
            node, _ = self.played.places.pop(replica, PENDING)
            if node:
                self._scheduler.forget(node, replica.workload, Room(replica.cpu_milli, replica.memory))
                there = self.played.reported[node]
                gone = {key: None for key, held in there.reservations.items() if held.pod == replica.uid}
                self.played.reported[node] = there.changed(reservations=gone)
        self.played.cluster.apply_pods(Changes(gone=tuple(replica.uid for replica in replicas)))
        self._report()

    def regroup(self) -> tuple[int, int]:
        """How many pods were restarted, and how many came to where they were planned."""
        restarts = as_planned = 0
        for _ in range(ROUNDS):
            began = time.process_time()
            self.played.cluster.regroup()
            self._searches.append(time.process_time() - began)
            steps = [step for plan in self.played.cluster.regroupings.plans.values() for step in plan.steps]
            if not steps:
                break
            for step in steps:
                restarts += 1
                as_planned += self._restart(step)
        return restarts, as_planned

    @property
    def milli_s(self) -> float:
        return 1e3 * fmean(self._searches) if self._searches else 0.0

    def _restart(self, step: RegroupStep) -> bool:
        old = next(replica for replica in self.played.places if replica.uid == step.uid)
        new = replace(old, index=old.index + ANEW)
        self.end([old])
        self.played.create([new])
        self.played.now += 5.0
        self.played.reserve()
        self._schedule(new)
        self._report()
        return self.played.places[new] == (step.to.node, str(step.to.numa_node))

    def _schedule(self, replica: Replica) -> bool:
        self.played.now += POD_S
        want = Room(replica.cpu_milli, replica.memory)
        try:
            choice = self._scheduler.schedule({"row": row(replica)}, replica.workload, want)
        except DoesNotFitError:
            self.played.places[replica] = PENDING
            return False
        self.played.bind(replica, choice.node)
        running = replace(row(replica), node=choice.node, phase="Running")
        self.played.cluster.apply_pods(Changes(rows=(running,)))
        return True

    def _report(self) -> None:
        for spec in self.specs:
            self.played.report(spec.name)


def told(nodes: int, fill: float, ended: float, seed: int, milp_s: float) -> Told:
    random = Random(seed)
    specs = population(nodes, random)
    lived = Lived(specs, seed)
    groups = [group for group in drawn.groups(specs, fill, random) if lived.come(group)]
    random.shuffle(groups)
    left = groups[round(ended * len(groups)) :]
    lived.end([replica for group in groups if group not in left for replica in group.replicas()])
    whole, before = _whole(lived, left)
    restarts, as_planned = lived.regroup()
    after, reached = _whole(lived, left)
    known = best.best(specs, left, milp_s)
    possible, yardstick = [*known.values()].count(1.0), fmean(known.values())
    pods = sum(len(group.replicas()) for group in left)
    return Told(
        len(left), pods, whole, after, possible, restarts, as_planned, before / yardstick, reached / yardstick,
        lived.milli_s,
    )  # fmt: skip


def _whole(lived: Lived, groups: Sequence[Instance]) -> tuple[int, float]:
    """How many groups are on one node, and their mean locality."""
    places = lived.played.places
    members = {group: [replica for replica in places if replica.instance == group] for group in groups}
    whole = sum(1 for there in members.values() if len({places[replica][0] for replica in there}) == 1)
    return whole, fmean(locality(there, places) for there in members.values())


def main() -> int:
    parser = quiet_parser("benchmarks.groups.regroup", __doc__)
    parser.add_argument("--nodes", type=int, action="append", help="may be given several times (default: 10)")
    parser.add_argument("--fill", type=float, default=0.95, help="share of the free CPUs asked for (default: 0.95)")
    parser.add_argument("--ended", type=float, default=0.4, help="share of the groups that end (default: 0.4)")
    parser.add_argument("--seed", type=int, action="append", help="(default: 1, 2 and 3)")
    parser.add_argument("--milp", type=float, default=best.MILP_S, help="seconds of the exact search (default: 20)")
    options = parser.parse_args()
    table = new_table()
    for nodes in options.nodes or [10]:
        for seed in options.seed or [1, 2, 3]:
            table.add_row(*row_of(nodes, seed, told(nodes, options.fill, options.ended, seed, options.milp)))
    Console(width=110).print(table)
    return 0


def new_table(title: str = "") -> Table:
    columns = (
        "nodes",
        "seed",
        "groups left",
        "on one node",
        "after",
        "whole in best",
        "evictions a pod",
        "as planned",
        "of best",
        "after",
        "ms",
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="right")
    return table


def row_of(nodes: int, seed: int, found: Told) -> list[str]:
    return [
        str(nodes), str(seed), str(found.groups), str(found.whole), str(found.after), str(found.possible),
        f"{found.restarts / found.pods:.2f}", f"{found.as_planned / max(1, found.restarts):.0%}",
        f"{found.locality:.3f}", f"{found.reached:.3f}", f"{found.milli_s:.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
