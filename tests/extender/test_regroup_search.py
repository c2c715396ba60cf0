"""The search for groups that are cut has time: it rests after each piece of work, and while pods are being scheduled."""

from __future__ import annotations

import threading
from collections.abc import Callable

from extender.regroup_search import RegroupSearch
from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import Failure, Threads


def threads() -> Threads:
    def failed(failure: Failure) -> None:
        raise AssertionError(failure.error)

    return Threads(failed)


def test_it_searches_again_and_again():
    searched = threading.Semaphore(0)
    search = RegroupSearch(lambda _: searched.release(), 0.01, threads=threads())
    search.start()
    assert all(searched.acquire(timeout=PATIENCE_S) for _ in range(3))
    search.stop()


def test_without_a_period_it_never_does():
    own = threads()
    search = RegroupSearch(lambda _: None, 0.0, threads=own)
    search.start()
    assert not own.standings()
    search.stop()


def test_it_goes_on_once_no_pods_are_scheduled_any_more_and_is_given_up_where_it_has_to_end():
    busy, began, went_on = [True], threading.Event(), threading.Event()

    def work(pause: Callable[[], None]) -> None:
        began.set()
        pause()
        went_on.set()
        while True:
            pause()

    own = threads()
    search = RegroupSearch(work, 0.01, busy=lambda: busy[0], threads=own)
    search.start()
    assert began.wait(PATIENCE_S)
    assert not went_on.is_set()
    busy[0] = False
    assert went_on.wait(PATIENCE_S)
    search.stop()
    until(lambda: not own.standings(), "the thread has ended")
