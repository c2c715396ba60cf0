"""What becomes of a pod that was evicted so that its group comes together again, told by counts alone: they are in the
cluster, so that a replica which took over in between judges as the one before it would have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from extender.state.regroup_record import LATELY_S, EvictionStep, RegroupRecord

ASKED_FOR_S = 60.0
"""How long an eviction is asked for that a PodDisruptionBudget does not allow, while the room is held."""

UNCLAIMED_S = 120.0
"""After so long a step is over whose pod was never evicted: who wrote it is no more, or has given up."""

NEWCOMER_S = 300.0
"""How long the room is held for who comes in the place of the pod, from its eviction: grace periods are 30 s by
default, and a StatefulSet waits for their end.
"""

WAIT_S = 600
"""Before the next step of the group after one that did not help, doubled each time."""

MOST_MISSED = 3
"""In a row, then the group is left as it is until a person says otherwise."""

MOST_ASKED = 100
"""Evictions of one group that a record remembers."""


class Fate(StrEnum):
    """What became of a step so far. standing: its pod has not been evicted; awaited: it was, and nobody has come yet.
    came, elsewhere: somebody has, where the room is held, or not there. nobody: not in time. unclaimed: it was never
    evicted.
    """

    STANDING = "standing"
    AWAITED = "awaited"
    CAME = "came"
    ELSEWHERE = "elsewhere"
    NOBODY = "nobody"
    UNCLAIMED = "unclaimed"

    @property
    def over(self) -> bool:
        return self not in (Fate.STANDING, Fate.AWAITED)


@dataclass(frozen=True, slots=True)
class StepSeen:
    """stands: the pod is there and is not being deleted. there, bound: how many of its workload are bound now, to the
    step's node and to any, without those that are being deleted.
    """

    stands: bool
    there: int
    bound: int


def fate(step: EvictionStep, seen: StepSeen, stood_s: float, gone_s: float) -> Fate:
    """stood_s, gone_s: since this replica has first seen the step, and first seen that the pod was evicted, seconds."""
    if seen.stands:
        return Fate.UNCLAIMED if stood_s >= UNCLAIMED_S else Fate.STANDING
    if seen.bound >= step.bound:
        return Fate.CAME if seen.there > step.there else Fate.ELSEWHERE
    return Fate.NOBODY if gone_s >= NEWCOMER_S else Fate.AWAITED


def full(record: RegroupRecord, now: float) -> bool:
    """Whether one more eviction would have one forgotten that counts against the budget. now: seconds since 1970."""
    return record.lately(now) >= MOST_ASKED


def begun(record: RegroupRecord, step: EvictionStep, steps: int, locality: float, now: float) -> RegroupRecord:
    """steps: of the plan. locality: now, 0..1. now: seconds since 1970."""
    plan = (steps, locality) if record.before is None else (record.left, record.before)
    recent = [at for at in record.asked if now - LATELY_S < at <= now]
    asked = tuple([*recent, int(now)][-MOST_ASKED:])
    return replace(record, step=step, asked=asked, left=plan[0], before=plan[1], until=0)


def ended(record: RegroupRecord, outcome: Fate, now: float) -> RegroupRecord:
    """The record after a step. now: seconds since 1970."""
    if outcome is Fate.CAME:
        return replace(record, step=None, left=max(0, record.left - 1))
    if outcome is Fate.UNCLAIMED:
        return refused(record, now, sure=False)
    return _missed(record, _WORDS[outcome], now)


_WORDS = {
    Fate.NOBODY: "nobody came in the place of the evicted pod",
    Fate.ELSEWHERE: "who came in the place of the evicted pod went elsewhere",
}


def refused(record: RegroupRecord, now: float, *, sure: bool) -> RegroupRecord:
    """Nothing was evicted: it is tried again later. sure: so that it does not count against the budget."""
    asked = record.asked[:-1] if sure else record.asked
    return replace(record, step=None, asked=asked, until=int(now) + WAIT_S)


def judged(record: RegroupRecord, locality: float | None, now: float) -> RegroupRecord:
    """Whether a plan had helped that was carried out. locality: now, 0..1; None: there is nothing left to plan."""
    if record.before is None or (record.left and locality is not None):
        return record
    if locality is None or locality > record.before:
        return replace(record, left=0, before=None, missed=0)
    return _missed(record, f"its locality did not rise over {record.before:.0%}", now)


def _missed(record: RegroupRecord, what: str, now: float) -> RegroupRecord:
    count = record.missed + 1
    halted = f"{count} times in a row it did not help; the last time {what}" if count >= MOST_MISSED else ""
    until = int(now) + WAIT_S * 2 ** (min(count, MOST_MISSED) - 1)
    return replace(record, step=None, left=0, before=None, missed=count, until=until, halted=halted)
