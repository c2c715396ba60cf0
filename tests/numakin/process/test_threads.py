"""Threads that go on whatever their rounds raise, and are named when they get nowhere."""

import queue
import threading

import pytest

from lab.standins.patience import PATIENCE_S
from numakin.process.threads import IDLE, Backoff, Failure, Threads, worded
from tests.clock import Clock

SOON = Backoff(first_s=0.001, longest_s=0.002)


@pytest.fixture
def failures() -> "queue.Queue[Failure]":
    return queue.Queue()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def threads(failures, clock) -> Threads:
    return Threads(failures.put, clock)


def raising(rounds: "queue.Queue[BaseException | None]", taken: "queue.Queue[object]"):
    """A round that raises what it gets."""

    def work() -> None:
        error = rounds.get(timeout=PATIENCE_S)
        taken.put(error)
        if error is not None:
            raise error

    return work


@pytest.mark.parametrize("error", [RuntimeError("dictionary changed size"), ValueError("not JSON"), SystemExit(3)])
def test_a_round_that_raises_is_told_and_the_next_one_comes(threads, failures, error):
    rounds, taken = queue.Queue(), queue.Queue()
    thread = threads.thread("lease", raising(rounds, taken), backoff=SOON)
    thread.start()
    rounds.put(error)
    rounds.put(None)
    received = failures.get(timeout=PATIENCE_S)
    assert (received.thread, received.error) == ("lease", error)
    assert [taken.get(timeout=PATIENCE_S), taken.get(timeout=PATIENCE_S)] == [error, None]
    assert threads.standings()[0].failures == 1
    stop(thread, rounds)
    assert failures.empty()


def test_a_log_that_fails_does_not_end_the_thread(clock):
    def unwritable(_failure: Failure) -> None:
        raise OSError(28, "No space left on device")

    rounds, taken = queue.Queue(), queue.Queue()
    thread = Threads(unwritable, clock).thread("events", raising(rounds, taken), backoff=SOON)
    thread.start()
    rounds.put(RuntimeError("a"))
    rounds.put(RuntimeError("b"))
    assert [str(taken.get(timeout=PATIENCE_S)), str(taken.get(timeout=PATIENCE_S))] == ["a", "b"]
    stop(thread, rounds)


def test_waits_double_up_to_the_longest():
    assert [Backoff(0.5, 30).wait_s(failures) for failures in (1, 2, 3, 7, 10_000)] == [0.5, 1, 2, 30, 30]


def test_each_failure_in_a_row_waits_longer_and_a_good_round_starts_anew(threads, failures):
    rounds, taken = queue.Queue(), queue.Queue()
    thread = threads.thread("events", raising(rounds, taken), backoff=Backoff(0.001, 0.004))
    thread.start()
    for error in (ValueError(), ValueError(), ValueError(), None, ValueError()):
        rounds.put(error)
    assert [failures.get(timeout=PATIENCE_S).wait_s for _ in range(4)] == [0.001, 0.002, 0.004, 0.001]
    stop(thread, rounds)


def test_a_thread_that_hangs_is_stale_by_name_until_it_comes_back(threads, clock):
    let_go, entered, done = threading.Event(), threading.Event(), queue.Queue()

    def work() -> None:
        done.put(None)
        entered.set()
        assert let_go.wait(PATIENCE_S)
        thread.stopping.wait(0.001)

    thread = threads.thread("traffic", work, stale_after_s=30)
    thread.start()
    assert entered.wait(PATIENCE_S)
    assert threads.stale() == ()
    clock.now += 31
    (stale,) = threads.stale()
    assert (stale.thread, stale.since_success_s, stale.essential) == ("traffic", 31.0, False)
    assert worded(threads.stale()) == "thread 'traffic' has had no good round for 31 s"
    let_go.set()
    [done.get(timeout=PATIENCE_S) for _ in range(2)]
    assert threads.stale() == ()
    thread.stop(PATIENCE_S)


def test_a_thread_that_fails_each_time_is_stale_with_its_error(threads, clock, failures):
    rounds, taken = queue.Queue(), queue.Queue()
    thread = threads.thread("lease", raising(rounds, taken), backoff=SOON, essential=True)
    thread.start()
    rounds.put(ValueError("not JSON"))
    failures.get(timeout=PATIENCE_S)
    clock.now += 61
    (stale,) = threads.stale()
    assert stale.essential
    assert str(stale) == "thread 'lease' has had no good round for 61 s: ValueError: not JSON"
    stop(thread, rounds)


def test_idle_rounds_are_good_but_do_not_make_up_for_the_last_work_that_failed(threads, clock, failures):
    """Else a thread that fails at each piece of work would look well whenever it waits for the next."""
    rounds: queue.Queue[object] = queue.Queue()
    done: queue.Queue[None] = queue.Queue()

    def work() -> object:
        done.put(None)
        step = rounds.get(timeout=PATIENCE_S)
        if isinstance(step, Exception):
            raise step
        return step

    def make(step: object) -> None:
        rounds.put(step)
        done.get(timeout=PATIENCE_S)

    thread = threads.thread("plan", work, backoff=SOON)
    thread.start()
    done.get(timeout=PATIENCE_S)
    clock.now += 59
    make(IDLE)
    clock.now += 59
    assert threads.stale() == ()
    make(KeyError("numa"))
    make(IDLE)
    clock.now += 2
    (stale,) = threads.stale()
    assert stale.error == "KeyError: 'numa'"
    make(None)
    assert threads.stale() == ()
    thread.stop()
    rounds.put(IDLE)
    thread.stop(PATIENCE_S)


def test_a_long_round_that_makes_progress_is_not_stale(threads, clock):
    step, stepped = queue.Queue(), queue.Queue()

    def work() -> None:
        while step.get(timeout=PATIENCE_S):
            thread.progress()
            stepped.put(None)

    thread = threads.thread("watch", work)
    thread.start()
    clock.now += 59
    step.put(True)
    stepped.get(timeout=PATIENCE_S)
    clock.now += 59
    assert threads.stale() == ()
    thread.stop()
    step.put(False)


def test_the_last_call_comes_after_the_last_round_and_the_thread_is_listed_no_more(threads):
    calls, entered = [], threading.Event()

    def work() -> None:
        calls.append("round")
        entered.set()
        thread.stopping.wait(PATIENCE_S)

    thread = threads.thread("lease", work, last=lambda: calls.append("last"))
    assert threads.standings() == ()
    thread.start()
    assert entered.wait(PATIENCE_S)
    assert [standing.thread for standing in threads.standings()] == ["lease"]
    thread.stop(PATIENCE_S)
    assert calls == ["round", "last"]
    assert threads.standings() == ()
    assert not thread.alive


def test_a_round_that_waits_for_work_is_woken_as_its_thread_is_asked_to_end(threads):
    waiting = queue.Queue()
    thread = threads.thread("events", waiting.get, wake=lambda: waiting.put(None))
    thread.start()
    thread.stop(PATIENCE_S)
    assert not thread.alive


def stop(thread, rounds) -> None:
    thread.stop()
    rounds.put(None)
    thread.stop(PATIENCE_S)
    assert not thread.alive


def test_what_a_thread_for_one_piece_of_work_raises_is_told(threads: Threads, failures: "queue.Queue[Failure]"):
    done: queue.Queue[str] = queue.Queue()
    threads.once("good", lambda: done.put(threading.current_thread().name))
    threads.once("bad", lambda: 1 // 0)
    assert done.get(timeout=PATIENCE_S) == "good"
    failure = failures.get(timeout=PATIENCE_S)
    assert (failure.thread, type(failure.error)) == ("bad", ZeroDivisionError)
    assert threads.standings() == ()
