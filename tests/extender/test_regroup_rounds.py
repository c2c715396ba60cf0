"""Groups are brought together again one pod at a time, whatever happens meanwhile."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest

from extender.planning.regroup_steps import MOST_ASKED, Fate, ended
from extender.regroup_rounds import RegroupTerms
from extender.state.regroup_record import EvictionStep, RegroupRecord, read
from numakin.process.hours import Hours
from tests.extender.regroup_model import BUDGET, ELSEWHERE, GROUPS, HERE, THERE, Replica, Truth

STEPS = 600


@pytest.mark.parametrize("seed", range(100))
def test_whatever_happens_no_pod_is_evicted_twice_or_without_room_or_beside_another_of_its_group(seed):
    truth = Truth(seed)
    for _ in range(STEPS):
        truth.happen()
    truth.settle()
    truth.check_settled()


def test_random_histories_reach_evictions_that_help_and_such_that_do_not():
    """Else they would show nothing."""
    evicted = missed = 0
    for seed in range(20):
        truth = Truth(seed)
        for _ in range(STEPS):
            truth.happen()
        evicted += len(truth.evicted)
        missed += sum(record.missed for record in truth.view.records.values())
    assert evicted > 40
    assert missed > 5


PLENTY = RegroupTerms(True, 100)


class Quiet:
    """One replica that leads and sees all at once, with nothing else going on."""

    def __init__(self, terms: RegroupTerms = PLENTY) -> None:
        self.truth = Truth(0)
        self.truth.budget = terms.budget
        self.replica: Replica = self.truth.replicas[0]
        self.replica.rounds.terms = terms

    def play(self, seconds: int, *, bind: str = THERE) -> None:
        for _ in range(seconds):
            self.truth.now += 1
            self.truth.end()
            waiting = [pod for pod in self.truth.view.pods.values() if not pod.node]
            self.truth._put(*(replace(pod, node=bind) for pod in waiting if bind))
            self.replica.view = self.truth.view
            self.replica.rounds.round()

    @property
    def evicted(self) -> int:
        return len(self.truth.evicted)

    def record(self, group: str = GROUPS[0]) -> RegroupRecord:
        return self.truth.view.records[group]


def test_all_groups_come_together():
    quiet = Quiet()
    quiet.play(600)
    assert all(quiet.truth.view.standing(group) == {THERE: 4} for group in GROUPS)
    assert quiet.evicted == 6
    assert all(record.missed == 0 and not record.halted for record in quiet.truth.view.records.values())


def test_a_step_that_waited_for_a_budget_is_not_carried_out_once_members_are_elsewhere():
    """Else the last one that is still away would be joined by one that was at home."""
    quiet = Quiet()
    quiet.truth.blocked = True
    quiet.play(5)
    (group,) = (name for name in GROUPS if quiet.record(name).step is not None)
    before = quiet.record(group).step
    assert before is not None
    moved = next(pod for pod in quiet.truth.view.of(group) if pod.node == HERE and pod.uid != before.uid)
    quiet.truth._put(replace(moved, node=THERE))
    quiet.play(6)
    assert quiet.record(group).step != before
    assert "not as it was planned for" in quiet.record(group).last
    quiet.truth.blocked = False
    quiet.play(600)
    assert quiet.truth.view.standing(group) == {THERE: 4}
    assert quiet.evicted == 5, "at once by a plan for what is there"


def test_nothing_is_evicted_by_a_replica_that_only_reports():
    quiet = Quiet(RegroupTerms(False))
    quiet.play(600)
    assert quiet.evicted == 0
    assert all(record == RegroupRecord() for record in quiet.truth.view.records.values())


@pytest.mark.parametrize("terms", [RegroupTerms(True, 0), RegroupTerms(True, 100, Hours.parse("02:00-02:01"))])
def test_nothing_is_evicted_without_a_budget_or_outside_of_the_hours(terms):
    quiet = Quiet(terms)
    quiet.play(300)
    assert quiet.evicted == 0


def test_a_group_whose_newcomers_go_elsewhere_is_left_alone_longer_each_time_and_then_for_good():
    quiet = Quiet()
    asked = []
    for _ in range(5000):
        before = quiet.evicted
        quiet.play(1, bind=ELSEWHERE)
        if quiet.evicted > before and quiet.truth.evicted[-1][1].startswith("one-"):
            asked.append(quiet.truth.now)
    assert len(asked) == 3
    assert asked[1] - asked[0] >= 600
    assert asked[2] - asked[1] >= 1200
    assert quiet.record().halted == (
        "3 times in a row it did not help; the last time who came in the place of the evicted pod went elsewhere"
    )


def test_a_pod_whose_budget_allows_no_eviction_is_asked_for_less_often_and_given_up_after_a_minute():
    quiet = Quiet()
    quiet.truth.blocked = True
    quiet.play(100)
    assert quiet.evicted == 0
    assert "was not evicted: 429" in next(record.last for record in quiet.truth.view.records.values() if record.last)
    assert max(record.missed for record in quiet.truth.view.records.values()) == 0


def test_room_is_given_back_when_nobody_comes():
    quiet = Quiet()
    quiet.play(30, bind="")
    assert quiet.evicted == 1
    (group,) = quiet.replica.held
    quiet.play(400, bind="")
    assert group not in quiet.replica.held
    assert quiet.record(group).missed == 1


def test_a_step_that_another_has_written_is_followed_and_never_carried_out():
    """As a person's, or one of an extender that crashed; or of somebody who may write there and not evict."""
    quiet = Quiet(RegroupTerms(False))
    pod = next(pod for pod in quiet.truth.view.of(GROUPS[0]) if pod.node == HERE)
    step = EvictionStep(pod.uid, pod.uid, "shop/Deployment/one", THERE, 1, 2, 4, quiet.replica.me)
    quiet.truth.view = replace(
        quiet.truth.view, records={**quiet.truth.view.records, GROUPS[0]: RegroupRecord(step=step)}
    )
    quiet.play(20)
    assert quiet.replica.held == {GROUPS[0]: step}
    quiet.play(200)
    assert quiet.evicted == 0
    assert quiet.replica.held == {}
    assert quiet.record().step is None


def test_a_replica_that_leads_again_begins_nothing_before_it_has_seen_what_the_other_began_meanwhile():
    """Between two of its rounds the Lease went to the other one, and was given back."""
    truth = Truth(0)
    first, second = truth.replicas
    first.leading_since, second.leading_since = inf, 0.0
    second.rounds.round()
    first.leading_since, second.leading_since = truth.now, inf
    first.rounds.round()
    assert [record.step.by for record in truth.view.records.values() if record.step] == [second.name]


class NoAnswer(Random):
    """All that is asked for is done, and nothing is answered."""

    def random(self) -> float:
        return 0.0


def test_a_step_whose_writing_was_not_answered_is_carried_out_once_it_is_seen_and_none_is_begun_before():
    quiet = Quiet()
    quiet.truth.random, quiet.truth.lossy = NoAnswer(), 1.0
    before = quiet.truth.view
    quiet.play(1)
    quiet.replica.view, quiet.truth.lossy = before, 0.0
    quiet.replica.rounds.round()
    assert quiet.evicted == 0
    quiet.play(4)
    assert quiet.evicted == 1


def test_the_budget_outlives_a_crash():
    quiet = Quiet(RegroupTerms(True, 2))
    for _ in range(10):
        quiet.play(120)
        quiet.replica.start()
        quiet.replica.rounds.terms = RegroupTerms(True, 2)
    assert quiet.evicted == 2


def test_nothing_more_is_evicted_of_a_group_than_its_record_remembers_in_an_hour():
    """Else the oldest would be forgotten, and a budget over that be exceeded."""
    quiet = Quiet(RegroupTerms(True, 1000))
    full = RegroupRecord(asked=(int(quiet.truth.now),) * MOST_ASKED)
    quiet.truth.view = replace(quiet.truth.view, records=dict.fromkeys(GROUPS, full))
    quiet.play(600)
    assert quiet.evicted == 0
    quiet.play(3600)
    assert quiet.evicted == 6


STEP = RegroupRecord(EvictionStep("web-1", "u1", "shop/Deployment/web", "n1", 1, 2, 4, "extender-0")).text


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"step":{}}', '{"step":{"pod":"../x"}}', "null", '{"asked":"x"}', "9" * 5000, '{"left":-1e999}',
        '{"missed":-1}', '{"missed":1' + "0" * 4000 + "}", '{"until":1e300}', '{"asked":[99999999999999999999]}',
        STEP.replace('"numa_node":1', '"numa_node":16384'), STEP.replace('"bound":4', '"bound":-1'),
    ],
)  # fmt: skip
def test_an_annotation_that_is_no_record_counts_as_none(text):
    assert read({"numakin.io/regroup": text}) == RegroupRecord()


def test_a_group_is_left_alone_for_hours_at_most_whatever_number_of_misses_is_written_there():
    """Two to the power of it could not be computed."""
    record = read({"numakin.io/regroup": '{"missed":1000000}'})
    after = ended(record, Fate.NOBODY, 1000)
    assert 1000 < after.until <= 1000 + 4 * 3600
    assert after.halted


def test_a_record_is_read_as_it_was_written():
    step = EvictionStep("web-1", "u1", "shop/Deployment/web", "n1", 1, 2, 4, "extender-0")
    record = RegroupRecord(step, (1, 2), 3, 0.25, 1, 99, "", "x")
    assert read({"numakin.io/regroup": record.text}) == record


assert BUDGET < 6  # so that histories meet it
