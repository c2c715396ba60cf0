import pytest

from numakin.process.loop import Burst, Loop

NEVER_S = 3600.0


@pytest.fixture
def loop():
    loop = Loop()
    yield loop
    loop.close()


def turned_until(loop, done):
    while not done():
        loop.run_once(0.01)


def test_several_events_are_one_call_once_they_have_stopped(loop):
    calls, later = [], []
    burst = Burst(loop, lambda: calls.append("called"), quiet_s=0.001, within_s=NEVER_S)
    for _ in range(3):
        burst.event()
    turned_until(loop, lambda: calls)
    loop.call_later(0.01, lambda: later.append("later"))
    turned_until(loop, lambda: later)
    assert calls == ["called"]


def test_events_that_do_not_stop_are_called_back_for_all_the_same(loop):
    calls = []
    burst = Burst(loop, lambda: calls.append("called"), quiet_s=NEVER_S, within_s=0.001)
    while not calls:
        burst.event()
        loop.run_once(0)
    assert calls == ["called"]


def test_an_event_in_the_call_begins_another_burst(loop):
    calls = []

    def called():
        calls.append("called")
        if len(calls) < 3:
            burst.event()

    burst = Burst(loop, called, quiet_s=0.001)
    burst.event()
    turned_until(loop, lambda: len(calls) == 3)
