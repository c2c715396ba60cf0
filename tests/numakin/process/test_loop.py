import os
from types import SimpleNamespace

import pytest

from numakin.process.loop import OVERDUE_S, Loop


@pytest.fixture
def loop():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def standing(monkeypatch):
    """The loop's clock, which no other work on the machine makes later."""
    monkeypatch.setattr("numakin.process.loop.time", SimpleNamespace(monotonic=lambda: 1000.0))


def test_a_descriptor_that_can_be_read_calls_back(loop, pipe):
    got = []
    loop.register(pipe[0], lambda: got.append(os.read(pipe[0], 9)))
    loop.run_once(0)
    os.write(pipe[1], b"x")
    loop.run_once()
    assert got == [b"x"]
    loop.unregister(pipe[0])


def test_timers_run_in_the_order_of_their_moments_and_then_of_their_making(loop, standing):
    got = []
    loop.call_later(-1, lambda: got.append("last"))
    for name in ("first", "second", "third"):
        loop.call_later(-3, lambda name=name: got.append(name))
    loop.call_later(-2, lambda: got.append("fourth"))
    while len(got) < 5:
        loop.run_once()
    assert got == ["first", "second", "third", "fourth", "last"]


def test_a_cancelled_timer_does_nothing_and_is_not_waited_for(loop):
    got = []
    loop.call_later(3600, lambda: got.append("cancelled")).cancel()
    loop.call_later(0, lambda: got.append("kept"))
    loop.run_once()
    loop.run_once(0)
    assert got == ["kept"]


def test_a_timer_that_sets_itself_again_does_not_starve_the_descriptors(loop, pipe):
    def again():
        loop.call_later(0, again)

    got = []
    loop.register(pipe[0], lambda: got.append(os.read(pipe[0], 9)))
    os.write(pipe[1], b"x")
    again()
    loop.run_once()
    assert got == [b"x"]


def test_a_callback_that_another_of_the_same_round_unregistered_is_not_called(loop):
    first, second = os.pipe(), os.pipe()
    got = []

    def take(mine, other):
        got.append(os.read(mine, 9))
        loop.unregister(other)

    loop.register(first[0], lambda: take(first[0], second[0]))
    loop.register(second[0], lambda: take(second[0], first[0]))
    os.write(first[1], b"x")
    os.write(second[1], b"x")
    loop.run_once()
    loop.run_once(0)
    assert got == [b"x"]
    for end in (*first, *second):
        os.close(end)


def test_stop_lets_the_round_end_and_run_return(loop, pipe):
    got = []

    def read():
        got.append(os.read(pipe[0], 9))
        loop.stop()

    loop.register(pipe[0], read)
    loop.call_later(-2 * OVERDUE_S, lambda: got.append("same round"))
    loop.call_later(0, lambda: got.append("next round"))
    os.write(pipe[1], b"x")
    loop.run()
    assert got == [b"x", "same round"]


def test_what_can_be_read_goes_before_timers_that_are_due(loop, pipe, standing):
    got = []
    loop.register(pipe[0], lambda: got.append(os.read(pipe[0], 1)))
    os.write(pipe[1], b"xyz")
    loop.call_later(0, lambda: got.append("first timer"))
    loop.call_later(0, lambda: got.append("second timer"))
    while len(got) < 5:
        loop.run_once()
    assert got == [b"x", b"y", b"z", "first timer", "second timer"]


def test_between_two_timers_it_looks_at_what_can_be_read(loop, pipe):
    got = []
    loop.register(pipe[0], lambda: got.append(os.read(pipe[0], 1)))
    loop.call_later(0, lambda: os.write(pipe[1], b"x"))
    loop.call_later(0, lambda: got.append("second timer"))
    while len(got) < 2:
        loop.run_once()
    assert got == [b"x", "second timer"]
