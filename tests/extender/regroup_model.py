"""A small cluster in which groups are brought together again by several replicas that see it late, crash, lose their
Lease and get no answers; with what must hold after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from extender.kube.api import ApiError, Unreachable
from extender.kube.evictions import Answered, EvictionAnswer
from extender.kube.objects.grouprows import GroupRow
from extender.planning.regroup_steps import MOST_MISSED, StepSeen
from extender.planning.regrouping import PlanBasis, Regrouping, RegroupStep, Spot
from extender.regroup_rounds import RegroupRounds, RegroupTerms
from extender.state.columns.free_room import NumaPlace
from extender.state.regroup_record import EvictionStep, RegroupRecord
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand

HERE, THERE, ELSEWHERE = "here", "there", "elsewhere"
GROUPS = ("shop/one", "shop/two", "shop/three")
REPLICAS = 4
"""Of the one workload of each group: half of them HERE, half THERE."""

BUDGET = 5
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Pod:
    """node: empty until bound. ready: at once, once it is."""

    uid: str
    group: str
    node: str
    leaving: bool = False

    @property
    def stands(self) -> bool:
        return bool(self.node) and not self.leaving


@dataclass(frozen=True, slots=True)
class View:
    """What the API server has, or had. revisions: of the groups' objects."""

    pods: Mapping[str, Pod]
    records: Mapping[str, RegroupRecord]
    revisions: Mapping[str, int]

    def of(self, group: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.group == group]

    def standing(self, group: str) -> Counter[str]:
        return Counter(pod.node for pod in self.of(group) if pod.stands)

    def at_rest(self, group: str) -> bool:
        return all(pod.stands for pod in self.of(group))


def workload(group: str) -> str:
    return f"shop/Deployment/{group.partition('/')[2]}"


@dataclass
class Replica:
    """One extender: what it has seen so far, and what it holds. It plans by what it sees."""

    truth: Truth
    name: str
    view: View
    leading_since: float = inf
    held: dict[str, EvictionStep] = field(default_factory=dict)
    rounds: RegroupRounds = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """As after a crash: nothing is remembered."""
        self.held.clear()
        self.rounds = RegroupRounds(
            self, self.plans, self.rows, self, RegroupTerms(True, BUDGET),
            clock=lambda: self.truth.now, wall=lambda: self.truth.now,
        )  # fmt: skip

    def plans(self) -> dict[str, Regrouping]:
        return {group: plan for group in GROUPS if (plan := self._plan(group)) is not None}

    def _plan(self, group: str) -> Regrouping | None:
        apart = [pod for pod in self.view.of(group) if pod.node != THERE]
        if not apart or not self.view.at_rest(group):
            return None
        steps = tuple(
            RegroupStep(
                pod.uid, "shop", pod.uid, workload(group), Spot(pod.node, NumaSet.of((0,))), NumaPlace(THERE, 1),
                Demand(), 0.1,
            )
            for pod in apart
        )  # fmt: skip
        there = self.view.standing(group)
        return Regrouping(group, self._basis(group), steps, 0.5, there[THERE] / REPLICAS, 1.0, there, {THERE: REPLICAS})

    def rows(self) -> dict[str, GroupRow]:
        return {
            group: GroupRow(
                "shop", group.partition("/")[2], uid=group, revision=str(self.view.revisions[group]), regroup=record
            )
            for group, record in self.view.records.items()
        }

    # What the cluster holds: `Promises`.

    @property
    def members(self) -> int:
        return len(self.view.pods)

    def seen(self, step: EvictionStep) -> StepSeen:
        pod = self.view.pods.get(step.uid)
        (group,) = (name for name in GROUPS if workload(name) == step.workload)
        there = self.view.standing(group)
        return StepSeen(pod is not None and not pod.leaving, there[step.node], sum(there.values()))

    def step(self, planned: RegroupStep, by: str) -> EvictionStep:
        (group,) = (name for name in GROUPS if workload(name) == planned.workload)
        there = self.view.standing(group)
        counts = there[planned.to.node], sum(there.values())
        return EvictionStep(planned.name, planned.uid, planned.workload, *planned.to, *counts, by)

    def _basis(self, group: str) -> PlanBasis:
        return PlanBasis.of({pod.uid: pod.node for pod in self.view.of(group)}, ())

    def stands(self, group: str, basis: PlanBasis) -> bool:
        return self._basis(group) == basis

    def obstacle(self, group: str, uid: str, origin: str = "") -> str:
        pod = self.view.pods.get(uid)
        if pod is None or not pod.stands or (origin and pod.node != origin):
            return "gone"
        return "" if self.view.at_rest(group) else "unrest"

    def keep(self, group: str, step: EvictionStep) -> str:
        pod = self.view.pods.get(step.uid)
        if self.truth.full and (group not in self.held or (pod is not None and pod.stands)):
            return "no room"
        self.held[group] = step
        return ""

    def withdraw(self, group: str) -> None:
        self.held.pop(group, None)

    # What is asked of the API server: `RegroupLink`.

    @property
    def me(self) -> str:
        return self.name

    def leads_since(self) -> float:
        return self.leading_since

    def write(self, row: GroupRow, record: RegroupRecord) -> None:
        if self.truth.random.random() < self.truth.lossy:
            if self.truth.random.random() < 0.5:
                self.truth.write(row, record)
            raise Unreachable("no answer")
        self.truth.write(row, record)

    def evict(self, namespace: str, step: EvictionStep) -> EvictionAnswer:
        (group,) = (name for name in GROUPS if workload(name) == step.workload)
        assert self.held.get(group) == step, "an eviction is asked for without the room"
        assert not self.truth.full, "an eviction is asked for though the room is none any more"
        if self.truth.random.random() < self.truth.lossy:
            if self.truth.random.random() < 0.5:
                self.truth.evict(group, step)
            return EvictionAnswer(Answered.FAILED, "no answer")
        return self.truth.evict(group, step)

    def tell_of_pod(self, *_: object) -> None:
        """Nobody reads it here."""

    tell_of_group = tell_of_pod


class Truth:
    """full: whether there is no room where groups are to be. blocked: whether a PodDisruptionBudget allows nothing.
    lossy: how often an answer is lost.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.now = Random(seed), 1_000_000.0
        self.full = self.blocked = False
        self.lossy, self.budget = 0.0, BUDGET
        self._uids = 0
        pods = {}
        for group in GROUPS:
            for at in range(REPLICAS):
                pod = self._pod(group, THERE if at % 2 else HERE)
                pods[pod.uid] = pod
        records = dict.fromkeys(GROUPS, RegroupRecord())
        self.view = View(pods, records, dict.fromkeys(GROUPS, 1))
        self.evicted: list[tuple[float, str]] = []
        self.misses: Counter[str] = Counter()
        self.replicas = [Replica(self, f"extender-{number}", self.view) for number in range(2)]
        self.replicas[0].leading_since = 0.0

    def _pod(self, group: str, node: str) -> Pod:
        self._uids += 1
        return Pod(f"{group.partition('/')[2]}-{self._uids}", group, node)

    # The API server.

    def write(self, row: GroupRow, record: RegroupRecord) -> None:
        if row.revision != str(self.view.revisions[row.group]):
            raise ApiError(409, "Conflict", "the object has been modified")
        before = self.view.records[row.group]
        if before == record:
            return
        assert before.step is None or record.step is None, "a step is written over another"
        others = (other.step for group, other in self.view.records.items() if group != row.group)
        assert record.step is None or not any(others), "two steps at a time"
        self.view = replace(
            self.view,
            records={**self.view.records, row.group: record},
            revisions={**self.view.revisions, row.group: self.view.revisions[row.group] + 1},
        )

    def evict(self, group: str, step: EvictionStep) -> EvictionAnswer:
        pod = self.view.pods.get(step.uid)
        if pod is None:
            return EvictionAnswer(Answered.FAILED, "404")
        if self.blocked:
            return EvictionAnswer(Answered.REFUSED, "429")
        if not pod.leaving:
            assert self.view.at_rest(group), "two pods of a group at a time"
            assert not self.view.records[group].halted, "evicted of a group that is halted"
            self.evicted.append((self.now, step.uid))
            lately = [uid for at, uid in self.evicted if self.now - HOUR_S < at]
            assert len(lately) <= self.budget, "over the budget"
            assert len({*lately}) == len(lately), "evicted twice"
            self._put(replace(pod, leaving=True), self._pod(group, ""))
        return EvictionAnswer(Answered.ACCEPTED)

    def _put(self, *pods: Pod) -> None:
        self.view = replace(self.view, pods={**self.view.pods, **{pod.uid: pod for pod in pods}})

    # What happens.

    def happen(self) -> None:
        """One thing, by chance."""
        (what,) = self.random.choices((*self._often, *self._seldom), [12] * len(self._often) + [1] * len(self._seldom))
        what()

    @property
    def _often(self) -> tuple[Callable[[], None], ...]:
        return self.round, self.round, self.pass_time, self.look, self.bind, self.end

    @property
    def _seldom(self) -> tuple[Callable[[], None], ...]:
        return self.pass_long, self.pass_long, self.crash, self.lead, self.trouble

    def round(self) -> None:
        self.random.choice(self.replicas).rounds.round()

    def look(self) -> None:
        """A replica's watch shows what there is now."""
        self.random.choice(self.replicas).view = self.view

    def pass_time(self) -> None:
        """Watches are behind by 1 to 30 ms, so that all have seen what there was."""
        self._pass(self.random.choice((1.0, 1.0, 3.0, 10.0)))

    def pass_long(self) -> None:
        self._pass(self.random.choice((60.0, 150.0, 400.0, 2000.0)))

    def _pass(self, seconds: float) -> None:
        self.now += seconds
        for replica in self.replicas:
            replica.view = self.view

    def bind(self) -> None:
        """A newcomer goes where the room is held, mostly."""
        waiting = [pod for pod in self.view.pods.values() if not pod.node]
        if waiting:
            pod = self.random.choice(waiting)
            self._put(replace(pod, node=self.random.choice((THERE, THERE, ELSEWHERE))))

    def end(self) -> None:
        leaving = [pod.uid for pod in self.view.pods.values() if pod.leaving]
        self.view = replace(self.view, pods={uid: pod for uid, pod in self.view.pods.items() if uid not in leaving})

    def crash(self) -> None:
        replica = self.random.choice(self.replicas)
        replica.start()
        replica.leading_since = max(replica.leading_since, self.now)

    def lead(self) -> None:
        """The Lease goes to one of them, who may not have seen yet what the other has written: it gave the Lease back."""
        chosen = self.random.choice(self.replicas)
        for replica in self.replicas:
            replica.leading_since = self.now if replica is chosen else inf

    def trouble(self) -> None:
        self.full, self.blocked = self.random.random() < 0.2, self.random.random() < 0.3
        self.lossy = self.random.choice((0.0, 0.0, 0.3))

    def settle(self) -> None:
        """All goes well from now on, and nothing new is begun."""
        self.full, self.blocked, self.lossy = False, False, 0.0
        for replica in self.replicas:
            replica.rounds.terms = RegroupTerms(False, BUDGET)
        for _ in range(40):
            self.now += 30
            self.end()
            self._put(*(replace(pod, node=THERE) for pod in self.view.pods.values() if not pod.node))
            for replica in self.replicas:
                replica.view = self.view
                replica.rounds.round()

    def check_settled(self) -> None:
        assert all(record.step is None for record in self.view.records.values())
        assert all(not replica.held for replica in self.replicas)
        assert all(record.missed <= MOST_MISSED for record in self.view.records.values())
        assert all(bool(record.halted) == (record.missed >= MOST_MISSED) for record in self.view.records.values())
