"""Carries out the plans by which groups come together again, one pod at a time in the whole cluster; and follows, on
every replica, what is written of it on the groups' objects.

First the step is written on the object, as it was read or not at all: of two replicas, or a replica and a person, one
is faster. Every replica that sees it there holds the room. Only then the eviction is asked for, by who wrote it. What
comes of it is told by counts that are in the cluster, so that any replica may go on; one that finds a step which it has
not written itself evicts nothing for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from extender.kube.api import ApiError, Unreachable
from extender.kube.evictions import Answered
from extender.kube.objects.grouprows import GroupRow
from extender.kube.regroup_link import EVICTED, NOT_EVICTED, NOT_REGROUPED, REGROUPED, RegroupLink
from extender.planning import regroup_steps
from extender.planning.regroup_steps import Fate, fate
from extender.planning.regrouping import PlanBasis, Regrouping
from extender.promises import Promises
from extender.state.regroup_record import EvictionStep, RegroupRecord
from numakin.process.budget import allowed
from numakin.process.hours import Hours
from numakin.process.log import Log
from numakin.process.threads import IDLE_S, Threads
from numakin.process.woken import WokenThread

EVERY_S = 1.0
"""Between two rounds while a step is under way, or this replica may begin one."""

SHARE = 0.02
"""The share of its time that the thread may take: a round walks over all groups' objects, which change all the time."""

SETTLE_S = 2.0
"""Between what is written being seen and the eviction, and between a replica's coming to lead and the first step that
it begins: watches are 1 to 30 ms behind what other replicas have written.
"""

AGAIN_S = 5.0
"""Before an eviction that was not accepted is asked for again, doubled each time."""

UNSEEN_S = 30.0
"""How long what was written need not be shown by the watch; what is seen later is another's from then on."""

ANSWERED_S = 30.0
"""How long an eviction that was accepted need not be shown by the watch."""

DENIED_S = 600.0
"""How long nothing is begun after the API server has said that this account may not evict."""

QUIET_S = 120.0
"""For so long there is no plan for a group whose plan counts as carried out: its enforcers have reported it by then."""

_log = Log("regroup")


@dataclass(frozen=True, slots=True)
class RegroupTerms:
    """evict: whether to begin anything. budget: pods in a hundred members that are evicted in an hour."""

    evict: bool = False
    budget: int = 2
    hours: Hours = field(default_factory=Hours)


@dataclass(slots=True)
class _FollowedStep:
    """A step as this replica has seen it. since, gone_at: seconds, monotonic. lacking: why the room is not held; empty:
    it is. asks: evictions that were not accepted; ask_at: when the next is due. told: that the pod was evicted.
    unsure: whether an answer was lost.
    """

    step: EvictionStep
    since: float
    gone_at: float | None = None
    fate: Fate = Fate.STANDING
    lacking: str = ""
    asks: int = 0
    ask_at: float = 0.0
    told: bool = False
    unsure: bool = False


@dataclass(slots=True)
class _BegunStep:
    """What this replica has written, by a plan that was made for this basis."""

    group: str
    step: EvictionStep
    basis: PlanBasis
    at: float


@dataclass(slots=True)
class RegroupRounds:
    """held: the cluster's room and pods. plans: by group, as they are now. rows: the groups' objects. count: called
    with what came of a step. clock: seconds, monotonic; wall: since 1970.
    """

    held: Promises
    plans: Callable[[], Mapping[str, Regrouping]]
    rows: Callable[[], Mapping[str, GroupRow]]
    link: RegroupLink
    terms: RegroupTerms
    count: Callable[[str], None] = lambda _outcome: None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _watched: dict[str, _FollowedStep] = field(default_factory=dict)
    _mine: dict[str, _BegunStep] = field(default_factory=dict)
    _begun: _BegunStep | None = None
    _denied_until: float = 0.0
    _unplanned: dict[str, float] = field(default_factory=dict)

    def round(self) -> bool:
        """Whether there is anything to look at again soon."""
        read_at = self.clock()
        rows = dict(self.rows())
        under_way = {group: step for group, row in rows.items() if (step := row.regroup.step) is not None}
        self._seen_begun(under_way)
        for group in [group for group in self._watched if group not in under_way]:
            self._forget(group)
        for group, step in under_way.items():
            self._follow(group, step)
        leads = self.link.leads_since() < math.inf
        if leads:
            for group in under_way:
                self._go_on(rows[group])
            if self.terms.evict and not under_way and self._begun is None:
                self._begin(rows, read_at)
        return bool(under_way or self._begun or (leads and self.terms.evict))

    def _seen_begun(self, under_way: Mapping[str, EvictionStep]) -> None:
        """What was written is shown by the watch, or is lost: another writer has taken it back."""
        begun = self._begun
        if begun is None:
            return
        late = self.clock() - begun.at >= UNSEEN_S
        if late:
            self._mine.pop(begun.group, None)
            self.held.withdraw(begun.group)
        if late or under_way.get(begun.group) == begun.step:
            self._begun = None

    def _forget(self, group: str) -> None:
        del self._watched[group]
        if self._begun is None or self._begun.group != group:
            self._mine.pop(group, None)
            self.held.withdraw(group)

    def _follow(self, group: str, step: EvictionStep) -> None:
        """Holds its room, as long as a pod may come."""
        now, watched = self.clock(), self._watched.get(group)
        if watched is None or watched.step != step:
            watched = self._watched[group] = _FollowedStep(step, now)
        seen = self.held.seen(step)
        if not seen.stands and watched.gone_at is None:
            watched.gone_at = now
        gone_s = now - watched.gone_at if watched.gone_at is not None else 0.0
        watched.fate = fate(step, seen, now - watched.since, gone_s)
        if watched.fate.over:
            self.held.withdraw(group)
        else:
            watched.lacking = self.held.keep(group, step)

    def _go_on(self, row: GroupRow) -> None:
        watched = self._watched[row.group]
        if watched.fate.over:
            self._end(row, watched)
        elif (mine := self._mine.get(row.group)) is not None and mine.step == watched.step:
            if watched.fate is Fate.STANDING:
                self._ask(row, watched, mine.basis)
            elif not watched.told:
                self._evicted(row, watched)

    def _end(self, row: GroupRow, watched: _FollowedStep) -> None:
        step, outcome = watched.step, watched.fate
        text = f"{_ENDS[outcome]}: pod {step.pod} was to go to NUMA node {step.numa_node} of {step.node}"
        record = replace(regroup_steps.ended(row.regroup, outcome, self.wall()), last=text)
        if not self._write(row, record):
            return
        self.count(outcome)
        came = outcome is Fate.CAME
        halt = f"; nothing more of it is evicted: {record.halted}" if record.halted else ""
        (_log.info if came else _log.warning)(
            "regrouping: a step is over", group=row.group, pod=step.pod, node=step.node, numa_node=step.numa_node,
            outcome=str(outcome), missed=record.missed, halted=record.halted,
        )  # fmt: skip
        self.link.tell_of_group(row, REGROUPED if came else NOT_REGROUPED, text + halt)

    def _ask(self, row: GroupRow, watched: _FollowedStep, basis: PlanBasis) -> None:
        """For the eviction, once the room is held everywhere."""
        now, step = self.clock(), watched.step
        if watched.lacking:
            self._give_up(row, watched, watched.lacking)
            return
        if now - watched.since < SETTLE_S or now < watched.ask_at:
            return
        if not self.held.stands(row.group, basis):
            self._give_up(row, watched, "its group or its nodes are not as it was planned for", again_at_once=True)
            return
        if why := self.held.obstacle(row.group, step.uid):
            self._give_up(row, watched, why)
            return
        if self.link.leads_since() == math.inf or not self._write(row, row.regroup):
            return  # what was read of the step may not be what is there
        answer = self.link.evict(row.namespace, step)
        watched.unsure |= answer.answered is Answered.FAILED
        if answer.answered is Answered.ACCEPTED:
            watched.ask_at = now + ANSWERED_S
            self._evicted(row, watched)
        elif answer.answered is Answered.DENIED:
            self._denied_until = now + DENIED_S
            self._give_up(row, watched, f"the extender may not evict: {answer.why}")
        elif now - watched.since >= regroup_steps.ASKED_FOR_S:
            self._give_up(row, watched, answer.why)
        else:
            watched.ask_at = now + max(answer.retry_after_s, AGAIN_S * 2.0**watched.asks)
            watched.asks += 1
            self.count(answer.answered)
            _log.info(
                "regrouping: eviction put off", group=row.group, pod=step.pod, why=answer.why,
                again_s=round(watched.ask_at - now),
            )  # fmt: skip

    def _evicted(self, row: GroupRow, watched: _FollowedStep) -> None:
        step, watched.told = watched.step, True
        self.count(Answered.ACCEPTED)
        _log.info(
            "regrouping: pod evicted", group=row.group, pod=step.pod, expected_node=step.node,
            expected_numa_node=step.numa_node, locality=row.regroup.before, steps_left=row.regroup.left,
        )  # fmt: skip
        text = (
            f"evicted so that group {row.group} comes together again: room for the pod in its place is held on NUMA "
            f"node {step.numa_node} of {step.node}"
        )
        self.link.tell_of_pod(row.namespace, step, EVICTED, text)

    def _give_up(self, row: GroupRow, watched: _FollowedStep, why: str, *, again_at_once: bool = False) -> None:
        """Nothing was evicted, as far as answers tell."""
        step = watched.step
        record = regroup_steps.refused(row.regroup, self.wall(), sure=not watched.unsure)
        if again_at_once:
            record = replace(record, until=row.regroup.until)
        if not self._write(row, replace(record, last=f"pod {step.pod} was not evicted: {why}"[:500])):
            return
        self._mine.pop(row.group, None)
        self.count("given up")
        _log.warning("regrouping: pod not evicted", group=row.group, pod=step.pod, why=why)
        self.link.tell_of_pod(row.namespace, step, NOT_EVICTED, f"not evicted to join group {row.group}: {why}")

    def _begin(self, rows: Mapping[str, GroupRow], read_at: float) -> None:
        """One step of one group, the one whose plan brings the most. read_at: when the rows were, on the clock."""
        plans, now = self.plans(), self.wall()
        if self._judge_unplanned(rows, plans) or not self._may_begin(rows, now):
            return
        if self.link.leads_since() + SETTLE_S > read_at:
            return  # another replica may have begun a step meanwhile
        for plan in sorted(plans.values(), key=lambda plan: (-plan.gain / plan.restarts, plan.group)):
            row = rows.get(plan.group)
            if row is None or row.regroup.halted or row.regroup.until > now or regroup_steps.full(row.regroup, now):
                continue
            record = regroup_steps.judged(row.regroup, plan.locality, now)
            if record.missed > row.regroup.missed:
                self._not_helped(row, record)
                return
            if self._begin_step(row, record, plan):
                return

    def _may_begin(self, rows: Mapping[str, GroupRow], now: float) -> bool:
        asked = sum(row.regroup.lately(now) for row in rows.values())
        budget = allowed(self.terms.budget, self.held.members)
        return asked < budget and self.terms.hours.include(now) and self.clock() >= self._denied_until

    def _begin_step(self, row: GroupRow, record: RegroupRecord, plan: Regrouping) -> bool:
        """Whether one was written down."""
        for planned in plan.steps:
            if self.held.obstacle(row.group, planned.uid, planned.origin.node):
                continue
            step = self.held.step(planned, self.link.me)
            if self.held.keep(row.group, step):
                continue
            written = regroup_steps.begun(record, step, plan.restarts, plan.locality, self.wall())
            self._begun = self._mine[row.group] = _BegunStep(row.group, step, plan.basis, self.clock())
            if self._write(row, written) is False:
                self._begun = None
                del self._mine[row.group]
                self.held.withdraw(row.group)
                return False
            _log.info(
                "regrouping: room is held", group=row.group, pod=step.pod, node=step.node, numa_node=step.numa_node,
                locality=plan.locality, reached=plan.reached, steps=plan.restarts,
            )  # fmt: skip
            return True
        return False

    def _judge_unplanned(self, rows: Mapping[str, GroupRow], plans: Mapping[str, Regrouping]) -> bool:
        """Whether a plan was found to be carried out: for a while there has been none any more."""
        now = self.clock()
        open_plans = {group for group, row in rows.items() if row.regroup.before is not None and group not in plans}
        self._unplanned = {group: self._unplanned.get(group, now) for group in open_plans}
        for group, since in self._unplanned.items():
            if now - since >= QUIET_S:
                return bool(self._write(rows[group], regroup_steps.judged(rows[group].regroup, None, self.wall())))
        return False

    def _not_helped(self, row: GroupRow, record: RegroupRecord) -> None:
        if not self._write(row, record):
            return
        self.count("not helped")
        _log.warning("regrouping: it did not help", group=row.group, missed=record.missed, halted=record.halted)
        halt = f"; nothing more of it is evicted: {record.halted}" if record.halted else ""
        self.link.tell_of_group(row, NOT_REGROUPED, f"its plan was carried out, and its locality did not rise{halt}")

    def _write(self, row: GroupRow, record: RegroupRecord) -> bool | None:
        """Whether it was written; None: that is not known."""
        try:
            self.link.write(row, record)
        except ApiError as refused:
            if refused.code != 409:  # somebody was faster: the next round sees what there is
                _log.warning("regrouping: not written", group=row.group, error=str(refused))
            return None if refused.code >= 500 else False
        except Unreachable as bad:
            _log.warning("regrouping: not written, as far as is known", group=row.group, error=str(bad))
            return None
        return True


_ENDS = {
    Fate.CAME: "the pod in its place has come",
    Fate.ELSEWHERE: "the pod in its place went elsewhere",
    Fate.NOBODY: "nobody came in its place",
    Fate.UNCLAIMED: "it was not evicted",
}


def regroup_thread(rounds: RegroupRounds, threads: Threads) -> WokenThread:
    """To be woken when groups' objects have changed. Else a round comes once a second while there is anything to look
    at, and every few seconds while there is not, since this replica may have come to lead.
    """
    return WokenThread(
        "regroup", lambda: EVERY_S if rounds.round() else IDLE_S, share=SHARE, first_s=IDLE_S, threads=threads
    )
