"""A thread that works when it is woken, and rests for the other part of its time."""

import threading
import time
from queue import Empty, Queue

import pytest

from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import Failure, Threads
from numakin.process.woken import WokenThread

WHOLE = 1.0
"""A share with which nothing is rested."""


@pytest.fixture
def failures() -> "Queue[Failure]":
    return Queue()


@pytest.fixture
def threads(failures: "Queue[Failure]") -> Threads:
    return Threads(failures.put)


def test_it_works_only_once_it_is_woken(threads: Threads) -> None:
    rounds: Queue[int] = Queue()
    thread = WokenThread("t", lambda: rounds.put(1), share=WHOLE, threads=threads)
    thread.start()
    with pytest.raises(Empty):
        rounds.get(timeout=0.05)
    thread.wake()
    rounds.get(timeout=PATIENCE_S)
    thread.stop(PATIENCE_S)
    assert rounds.empty()


def test_the_first_round_may_be_due_by_itself_and_each_says_when_the_next_is(threads: Threads) -> None:
    rounds: Queue[int] = Queue()
    answers = iter([0.0, 0.0, None])

    def work() -> float | None:
        rounds.put(1)
        return next(answers)

    thread = WokenThread("t", work, share=WHOLE, first_s=0.0, threads=threads)
    thread.start()
    for _ in range(3):
        rounds.get(timeout=PATIENCE_S)
    with pytest.raises(Empty):
        rounds.get(timeout=0.05)
    thread.stop(PATIENCE_S)


def test_what_it_rests_counts_for_when_the_next_is_due(threads: Threads) -> None:
    """Its rest is as long as that."""
    began: Queue[float] = Queue()

    def work() -> float:
        began.put(time.monotonic())
        time.sleep(0.01)
        return 1.0

    thread = WokenThread("t", work, share=0.01, first_s=0.0, threads=threads)
    thread.start()
    first, second = (began.get(timeout=PATIENCE_S) for _ in range(2))
    thread.stop(PATIENCE_S)
    assert second - first < 1.8


def test_what_a_failed_round_was_woken_for_is_done_by_the_next(threads: Threads, failures: "Queue[Failure]") -> None:
    rounds: Queue[int] = Queue()
    outcomes = iter([True, False])

    def work() -> None:
        if next(outcomes):
            raise OSError("the first")
        rounds.put(1)

    thread = WokenThread("t", work, share=WHOLE, threads=threads)
    thread.start()
    thread.wake()
    assert str(failures.get(timeout=PATIENCE_S).error) == "the first"
    rounds.get(timeout=PATIENCE_S)
    thread.stop(PATIENCE_S)


def test_what_wakes_it_during_a_round_is_followed_by_one_more_however_often(threads: Threads) -> None:
    rounds: Queue[int] = Queue()
    go = threading.Semaphore(0)

    def work() -> None:
        rounds.put(1)
        assert go.acquire(timeout=PATIENCE_S)

    thread = WokenThread("t", work, share=WHOLE, threads=threads)
    thread.start()
    thread.wake()
    rounds.get(timeout=PATIENCE_S)
    for _ in range(3):
        thread.wake()
    go.release()
    rounds.get(timeout=PATIENCE_S)
    go.release()
    with pytest.raises(Empty):
        rounds.get(timeout=0.05)
    thread.stop(PATIENCE_S)


def test_it_ends_at_once_while_it_waits_or_rests_and_works_no_more(threads: Threads) -> None:
    rounds: Queue[int] = Queue()
    thread = WokenThread("t", lambda: rounds.put(1), share=1e-9, threads=threads)
    thread.start()
    thread.wake()
    rounds.get(timeout=PATIENCE_S)
    thread.wake()
    thread.stop(PATIENCE_S)
    until(lambda: not threads.standings(), "the thread has ended")
    assert rounds.empty()


def test_a_round_that_finds_nothing_after_one_that_failed_is_a_good_one(
    threads: Threads, failures: "Queue[Failure]"
) -> None:
    """Else one failure would make a thread stale that looks again and again."""
    fails = [True]

    def work() -> float:
        if fails[0]:
            raise ValueError("x")
        return 0.0

    thread = WokenThread("t", work, share=0.5, first_s=0.0, threads=threads)
    thread.start()
    failures.get(timeout=PATIENCE_S)
    fails[0] = False
    until(lambda: not threads.standings()[0].error, "a good round")
    thread.stop(PATIENCE_S)
