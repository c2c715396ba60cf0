"""A soak: rounds of churn, each under faults drawn by the seed, and the invariants after each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from lab.standins.extender import ExtenderGone
from tests.soak import invariants
from tests.soak.cluster import Cluster
from tests.soak.faults import FAULTS, Row
from tests.soak.growth import Growth
from tests.soak.invariants import Broken, Invariant
from tests.soak.nodes import ContainerFailed, Node, status
from tests.soak.pods import Draw, Running
from tests.soak.processes import NotSettled, until

STEPS = 6
"""Pods that come or go on each node in a round."""

TOGETHER = 3
"""Faults in one round, at most."""


@dataclass(slots=True)
class Tally:
    """What the soak has done so far, by fault. broken: with the faults of the round. slowest_s: the longest creation."""

    rounds: int = 0
    created: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[tuple[str, ...], Broken]] = field(default_factory=list)
    slowest_s: dict[str, float] = field(default_factory=dict)

    def count(self, invariant: Invariant, fault: str = "") -> int:
        return sum(broken.invariant is invariant and (not fault or fault in names) for names, broken in self.broken)


class Soak:
    """show: gets a sentence for each broken invariant, when it is seen."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        faults: Mapping[str, Row] = FAULTS,
        show: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.tally, self.growth = Tally(), Growth()
        self._cluster, self._faults, self._show = cluster, faults, show
        self._random = Random(seed)
        self._churns = [_Churn(cluster, node, Random(self._random.random())) for node in cluster.nodes]
        self._deck: list[str] = []

    def settle(self) -> None:
        """Raises NotSettled."""
        self._cluster.settled()
        for churn in self._churns:
            until(lambda churn=churn: not self._lacking(churn), lambda churn=churn: self._lacking(churn))

    def round(self) -> None:
        """One round of churn under one fault or two. Raises NotSettled when the cluster does not come back."""
        names = tuple(self._draw() for _ in range(self._random.randint(1, TOGETHER)))
        self.tally.rounds += 1
        self.tally.tries.update(names)
        with ThreadPoolExecutor(len(self._churns)) as threads:
            churning = [threads.submit(churn.steps, STEPS) for churn in self._churns]
            self._under(names)
            for ended in churning:
                ended.result()
        durations = [duration for churn in self._churns for duration in churn.durations()]
        for name in names:
            self.tally.created[name] += len(durations)
            self.tally.slowest_s[name] = max(self.tally.slowest_s.get(name, 0.0), *durations, 0.0)
        broken = [each for churn in self._churns for each in churn.taken()]
        try:
            self.settle()
        except (NotSettled, ExtenderGone) as error:
            broken += [Broken(Invariant.UNSETTLED, str(error)), *self._after()]
            self._note(names, broken)
            raise
        self._note(names, [*broken, *self._after()])
        self.growth.sample(self._cluster)

    def _under(self, names: tuple[str, ...]) -> None:
        """The faults begin one after the other, and end so, in the middle of the churn."""
        with ExitStack() as faults:
            for name in names:
                row = self._faults[name]
                time.sleep(self._random.uniform(0, 0.2))
                faults.enter_context(row.fault(self._cluster, self._random))
                time.sleep(self._random.uniform(*row.seconds))

    def _after(self) -> list[Broken]:
        return [
            broken
            for churn in self._churns
            for check in (invariants.untouched, invariants.exclusive, invariants.settled)
            for broken in check(churn.node, churn.running)
        ]

    def _note(self, names: tuple[str, ...], broken: list[Broken]) -> None:
        for each in broken:
            self.tally.broken.append((names, each))
            self._show(f"round {self.tally.rounds} ({'; '.join(names)}): {each.invariant.value}: {each.sentence}")

    def _draw(self) -> str:
        if not self._deck:
            self._deck = [name for name, row in sorted(self._faults.items()) for _ in range(row.weight)]
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def _lacking(self, churn: _Churn) -> str:
        """Why the node has not settled yet; empty: it has."""
        self._cluster.keep()
        answer, name = status(churn.node), churn.node.name
        if not answer.get("registered"):
            return f"{name} is not registered with its runtime"
        view = self._cluster.views().get(name, {})
        if not view.get("live") or view.get("generation") != answer.get("generation"):
            return f"the extender has generation {view.get('generation')} of {name}, which is at {answer.get('generation')}"
        return next((broken.sentence for broken in invariants.settled(churn.node, churn.running)), "")


class _Churn:
    """One node's pods: `steps` comes from a thread of its own, all else while none runs."""

    def __init__(self, cluster: Cluster, node: Node, random: Random) -> None:
        self.node = node
        self.running: list[Running] = []
        self._durations: list[float] = []
        self._cluster, self._random = cluster, random
        self._draw = Draw(random, node.room)
        self._broken: list[Broken] = []

    def steps(self, count: int) -> None:
        for _ in range(count):
            try:
                self._step()
            except ContainerFailed as error:
                self._broken.append(Broken(Invariant.FAILED, str(error)))
            self._broken += [
                *invariants.exclusive(self.node, self.running),
                *invariants.untouched(self.node, self.running),
            ]
            time.sleep(self._random.uniform(0, 0.3))

    def durations(self) -> list[float]:
        """Seconds that each creation took since this was last asked."""
        durations, self._durations = self._durations, []
        return durations

    def taken(self) -> list[Broken]:
        broken, self._broken = self._broken, []
        return broken

    def _step(self) -> None:
        if self.running and (len(self.running) >= self.node.room.pods or self._random.random() < 0.4):
            container = self.running.pop(self._random.randrange(len(self.running)))
            self._cluster.deleted(container.spec)
            self.node.end(container.id)
            return
        spec = self._draw.pod(self.node.name, self.running)
        uid = self._cluster.created(spec, self.node.name)
        began = time.monotonic()
        made = self.node.run(spec, uid)
        self._durations.append(time.monotonic() - began)
        self.running.append(Running(made, spec))
