from __future__ import annotations

from dataclasses import replace

from enforcer.report.health import EVERY_S, HealthNews
from process.threads import Standing

WELL = Standing("stream", 1.0, stale=False, essential=False, failures=0, error="")
FAILING = replace(WELL, stale=True, since_success_s=70.0, failures=3, error="OSError: no route")


class Enforcer:
    """Whose health is told, at a time that the test sets."""

    def __init__(self) -> None:
        self.standings, self.collector, self.now = [WELL], "cgroup_skb", 0.0
        self.news = HealthNews(
            lambda: self.collector, lambda: "registered", lambda: self.standings, clock=lambda: self.now
        )


def test_it_is_told_once_while_nothing_changes() -> None:
    enforcer = Enforcer()
    health = enforcer.news.due()
    assert health is not None
    assert (health.collector, health.runtime, [thread.name for thread in health.threads]) == (
        "cgroup_skb", "registered", ["stream"],
    )  # fmt: skip
    assert enforcer.news.due() is None


def test_that_time_passes_is_no_change() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.standings, enforcer.now = [replace(WELL, since_success_s=4.0)], EVERY_S - 1
    assert enforcer.news.due() is None
    enforcer.now = EVERY_S
    assert enforcer.news.due() is not None


def test_a_thread_that_gets_nowhere_is_told_at_once() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.standings = [FAILING]
    health = enforcer.news.due()
    assert health is not None
    (thread,) = health.threads
    assert (thread.stale, thread.failures, thread.error) == (True, 3, "OSError: no route")


def test_another_collector_is_told_at_once() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.collector = "none"
    assert enforcer.news.due() is not None


def test_a_stream_that_begins_anew_is_told_everything() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.news.begin()
    assert enforcer.news.due() is not None
