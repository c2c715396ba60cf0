"""One caller waits at a time, and after a wait in vain nobody does until there is news."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from process.brief_wait import BriefWait


def test_one_caller_waits_at_a_time():
    brief, waiting, known = BriefWait(60), Event(), Event()

    def looked() -> bool:
        waiting.set()
        return known.is_set()

    with ThreadPoolExecutor() as threads:
        first = threads.submit(brief.until, looked)
        assert waiting.wait(60)
        looks = iter([False])
        brief.until(lambda: next(looks))
        known.set()
        brief.news()
        first.result(60)


def test_after_a_wait_in_vain_nobody_waits_until_the_watch_goes_on():
    brief = BriefWait(0.01)
    brief.until(lambda: False)
    looks = iter([False])
    brief.until(lambda: next(looks))
    brief.news()
    looks = iter([False, True])
    brief.until(lambda: next(looks))
    assert [*looks] == []
