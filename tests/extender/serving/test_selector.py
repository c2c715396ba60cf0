"""Known sockets are looked at in each round of the event loop, strangers' one at a time and in turn."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.serving.selector import TURN_S, FairSelector

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Sockets:
    """Of pairs: one end is watched, what the other sends makes it ready to be read."""

    def __init__(self, count: int) -> None:
        self._stack = ExitStack()
        pairs = [socket.socketpair() for _ in range(count)]
        self.watched = [self._stack.enter_context(near).fileno() for near, _ in pairs]
        self._far = [self._stack.enter_context(far) for _, far in pairs]

    def close(self) -> None:
        self._stack.close()

    def ready(self, *numbers: int) -> None:
        for number in numbers:
            self._far[number].send(b"x")


@pytest.fixture
def selector():
    with FairSelector() as selector:
        yield selector


@pytest.fixture
def sockets():
    sockets = Sockets(12)
    yield sockets
    sockets.close()


def seen(selector: FairSelector) -> set[int]:
    return {key.fd for key, _ in selector.select(0)}


def rounds_until(selector: FairSelector, enough: Callable[[set[int]], bool]) -> list[set[int]]:
    rounds: list[set[int]] = []
    while not enough(set().union(*rounds)):
        rounds.append(seen(selector))
    return rounds


def strangers(selector: FairSelector, sockets: Sockets, *numbers: int, address: str = "10.0.0.1") -> set[int]:
    for number in numbers:
        selector.distrust(sockets.watched[number], address)
        selector.register(sockets.watched[number], READ)
    return {sockets.watched[number] for number in numbers}


def test_all_known_ones_are_looked_at_in_one_round(selector, sockets):
    for descriptor in sockets.watched:
        selector.register(descriptor, READ)
    sockets.ready(*range(12))
    assert seen(selector) == set(sockets.watched)


def test_of_strangers_one_is_looked_at_in_a_round_and_none_twice_before_all_were(selector, sockets):
    crowd = strangers(selector, sockets, *range(12))
    sockets.ready(*range(12))
    rounds = rounds_until(selector, crowd.issubset)
    assert sorted(map(len, filter(None, rounds))) == [1] * 12


def test_however_many_connections_an_address_has_the_next_address_is_next(selector, sockets):
    crowd = strangers(selector, sockets, *range(10), address="10.0.0.1")
    newcomers = strangers(selector, sockets, 10, 11, address="10.0.0.2")
    sockets.ready(*range(12))
    looked_at = [descriptor for each in rounds_until(selector, (crowd | newcomers).issubset) for descriptor in each]
    assert newcomers <= set(looked_at[:4])


def test_strangers_rest_after_a_turn_that_took_long_and_are_not_forgotten(selector, sockets):
    """A turn is as long as the round in which a stranger was looked at."""
    crowd = strangers(selector, sockets, 0, 1)
    sockets.ready(0, 1)
    first = seen(selector)
    begin = time.monotonic()
    while time.monotonic() - begin < TURN_S:
        pass
    rounds = rounds_until(selector, (crowd - first).issubset)
    assert rounds[0] == set()


def test_a_known_one_does_not_wait_for_the_crowd(selector, sockets):
    known = sockets.watched[0]
    selector.register(known, READ)
    strangers(selector, sockets, *range(1, 12))
    sockets.ready(*range(12))
    assert known in seen(selector)


def test_strangers_have_their_turn_although_known_ones_are_ready_all_the_time(selector, sockets):
    known = sockets.watched[0]
    selector.register(known, READ)
    crowd = strangers(selector, sockets, *range(1, 12))
    sockets.ready(*range(12))
    rounds = rounds_until(selector, crowd.issubset)
    assert all(known in each for each in rounds)


def test_who_becomes_known_need_not_wait_any_more(selector, sockets):
    strangers(selector, sockets, *range(12))
    sockets.ready(*range(12))
    for descriptor in sockets.watched[:5]:
        selector.trust(descriptor)
    assert seen(selector) >= set(sockets.watched[:5])


def test_a_stranger_that_hangs_up_is_told_of(selector):
    with socket.socket() as unconnected:  # epoll says that it is hung up
        selector.distrust(unconnected.fileno(), "10.0.0.1")
        selector.register(unconnected.fileno(), READ)
        assert seen(selector) == {unconnected.fileno()}
        selector.unregister(unconnected.fileno())


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["register", "modify", "unregister", "distrust", "trust", "send"]),
            st.integers(0, 3),
            st.sampled_from([READ, WRITE, READ | WRITE]),
        ),
        max_size=30,
    )
)
def test_whatever_is_known_of_whom_what_is_ready_is_what_epoll_says(steps):
    sockets = Sockets(4)
    with FairSelector() as fair, selectors.EpollSelector() as epoll:
        for step, number, events in steps:
            descriptor = sockets.watched[number]
            registered = descriptor in epoll.get_map()
            if step == "send":
                sockets.ready(number)
            elif step == "trust":
                fair.trust(descriptor)
            elif step == "distrust":
                fair.distrust(descriptor, f"10.0.0.{events}")
            elif step == "register" and not registered:
                assert fair.register(descriptor, events, step) == epoll.register(descriptor, events, step)
            elif step == "modify" and registered:
                assert fair.modify(descriptor, events, step) == epoll.modify(descriptor, events, step)
            elif step == "unregister" and registered:
                assert fair.unregister(descriptor) == epoll.unregister(descriptor)
        assert {each: fair.get_key(each) for each in epoll.get_map()} == dict(epoll.get_map())
        expected = {(key.fd, events) for key, events in epoll.select(0)}
        told = {(key.fd, events) for key, events in fair.select(0)}
        while not told >= expected:
            told |= {(key.fd, events) for key, events in fair.select(0)}
        assert told == expected
    sockets.close()


@pytest.mark.parametrize("method", ["unregister", "modify"])
def test_what_was_never_registered_is_a_key_error(selector, sockets, method):
    with pytest.raises(KeyError):
        getattr(selector, method)(sockets.watched[0], *((READ,) if method == "modify" else ()))
