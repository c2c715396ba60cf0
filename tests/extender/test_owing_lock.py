"""Room that was promised is held by whoever comes first."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from extender.owing_lock import OwingLock
from tests.extender.scheduler.calling import Site, body
from tests.extender.told import reservations_of


@pytest.mark.parametrize("who", ["settled", "entered"])
def test_what_is_owed_is_done_once_and_first(who: str):
    lock, done = OwingLock(), []
    lock.owe(lambda: done.append("owed"))
    assert done == []
    if who == "settled":
        lock.settle()
    with lock:
        done.append("taken")
    assert done == ["owed", "taken"]


def test_it_is_done_under_the_lock_and_nothing_of_it_is_lost():
    lock, locked = OwingLock(), []
    lock.owe(lambda: locked.append(lock.locked()))
    lock.owe(lambda: locked.append(lock.locked()))
    lock.settle()
    assert locked == [True, True]
    assert not lock.locked()


def test_who_takes_the_lock_is_not_to_blame_for_what_is_owed():
    lock = OwingLock()
    lock.owe(lambda: 1 / 0)
    with lock:
        pass
    assert not lock.locked()


@pytest.mark.parametrize("asks", [lambda site: site.cluster.figures(), lambda site: site.prioritize(body("next"))])
def test_room_is_held_for_whoever_asks_before_the_answer_is_seen_to_be_sent(asks):
    site = Site()
    answer = site.prioritize.at_once(body())
    assert [*reservations_of(site.cluster, "a")] == ["kin"]
    asks(site)
    assert "p" in reservations_of(site.cluster, "a")
    answer.then()
    assert "p" in reservations_of(site.cluster, "a")


def test_each_pod_is_told_of_though_the_next_one_is_scored_before_its_answer_is_seen_to_be_sent():
    site = Site()
    with capture_logs() as lines:
        first, second = (site.prioritize.at_once(body(uid)) for uid in ("p", "q"))
        first.then()
        second.then()
    assert [line["pod"] for line in lines if line["event"] == "scored"] == ["default/p", "default/q"]
    assert [*reservations_of(site.cluster, "a")] == ["kin", "p", "q"]
