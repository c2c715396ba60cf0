"""One caller waits at a time, and after a wait in vain nobody does until there is news."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from lab.standins.patience import PATIENCE_S
from numakin.process.brief_wait import BriefWait


def test_one_caller_waits_at_a_time():
    brief, waiting, known = BriefWait(), Event(), Event()

    def looked() -> bool:
        if brief._turn.locked():
            waiting.set()
        return known.is_set()

    with ThreadPoolExecutor() as threads:
        first = threads.submit(brief.until, looked, PATIENCE_S)
        assert waiting.wait(PATIENCE_S)
        looks = iter([False])
        brief.until(lambda: next(looks), PATIENCE_S)
        known.set()
        brief.news()
        first.result(60)


def test_after_a_wait_in_vain_nobody_waits_until_the_watch_goes_on():
    brief = BriefWait()
    brief.until(lambda: False, 0.01)
    looks = iter([False])
    brief.until(lambda: next(looks), PATIENCE_S)
    brief.news()
    looks = iter([False, True])
    brief.until(lambda: next(looks), PATIENCE_S)
    assert [*looks] == []


def test_who_has_no_time_left_has_not_waited_in_vain():
    brief = BriefWait()
    brief.until(lambda: False, 0.0)
    looks = iter([False, True])
    brief.until(lambda: next(looks), PATIENCE_S)
    assert [*looks] == []
