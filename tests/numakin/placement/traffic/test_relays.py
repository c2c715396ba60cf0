"""Who passes on what it receives is recognised, and who does not is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.traffic.graph import Amount, Graph, Key
from numakin.placement.traffic.relays import relays

RELAY = "mesh/DaemonSet/proxy"


def wl(name: str) -> str:
    return f"shop/Deployment/{name}"


def exchange(client: str, server: str, asked: float, answered: float, messages: float = 10.0) -> dict[Key, Amount]:
    return {
        Key(client, server, "tcp"): Amount(asked, messages),
        Key(server, client, "tcp"): Amount(answered, messages),
    }


def relayed(client: str, server: str, asked: float, answered: float, *, header: float = 0.0) -> dict[Key, Amount]:
    """One exchange through the relay, which adds to requests."""
    return exchange(client, RELAY, asked, answered) | exchange(RELAY, server, asked + header, answered)


TWO_PAIRS = relayed(wl("a"), wl("b"), 100, 2000) | relayed(wl("x"), wl("y"), 300, 5000)


@pytest.mark.parametrize(
    "edges",
    [
        TWO_PAIRS,
        relayed(wl("a"), wl("b"), 100, 2000, header=40) | relayed(wl("x"), wl("y"), 300, 5000, header=40),
        relayed(wl("a"), wl("b"), 2000, 100) | relayed(wl("x"), wl("y"), 5000, 300),
        TWO_PAIRS | exchange(RELAY, wl("config"), 5, 200, 1) | exchange(wl("scraper"), RELAY, 3, 300, 1),
        TWO_PAIRS | exchange(RELAY, wl("twin"), 100, 100),
        TWO_PAIRS | {Key(RELAY, wl("a"), "wake"): Amount(0, 1000)},
    ],
    ids=["plain", "with headers", "uploads", "with little of its own", "and a twin", "waking its clients"],
)
def test_a_relay_is_recognised(edges):
    assert relays(Graph(edges)) == {RELAY}


@pytest.mark.parametrize(
    "edges",
    [
        relayed(wl("a"), wl("b"), 100, 2000),
        exchange(wl("a"), RELAY, 100, 2000) | exchange(wl("x"), RELAY, 300, 5000) | exchange(RELAY, wl("b"), 400, 7000),
        exchange(wl("a"), RELAY, 100, 7000)
        | exchange(RELAY, wl("b"), 40, 2000)
        | exchange(RELAY, wl("y"), 60, 5000)
        | exchange(wl("rare"), RELAY, 0.1, 7, 0.01),
        exchange(wl("a"), RELAY, 100, 2000)
        | exchange(wl("x"), RELAY, 300, 5000)
        | exchange(RELAY, wl("b"), 50, 9000)
        | exchange(RELAY, wl("y"), 50, 9000),
        exchange(wl("a"), RELAY, 100, 2000)
        | exchange(wl("x"), RELAY, 300, 5000)
        | exchange(RELAY, wl("b"), 100, 2000, 40)
        | exchange(RELAY, wl("y"), 300, 5000, 40),
        relayed(wl("a"), wl("b"), 100, 100) | relayed(wl("x"), wl("y"), 300, 300),
        exchange(wl("a"), RELAY, 100, 2000) | exchange(wl("x"), RELAY, 300, 5000),
    ],
    ids=[
        "one client and one server",
        "one server: its clients belong together",
        "one client that matters",
        "answers with less than it fetches",
        "asks four times for each question",
        "no telling which way",
        "a server",
    ],
)  # fmt: skip
def test_others_are_not_taken_for_one(edges):
    assert relays(Graph(edges)) == frozenset()


def test_a_relay_stays_one_at_the_edge():
    edges = (
        relayed(wl("a"), wl("b"), 100, 2000) | exchange(wl("x"), RELAY, 300, 5000) | exchange(RELAY, wl("y"), 300, 4200)
    )
    assert relays(Graph(edges)) == frozenset()
    assert relays(Graph(edges), {RELAY}) == {RELAY}


pairs = st.lists(st.tuples(st.floats(10, 1e6), st.floats(2, 100)), min_size=2, max_size=12)


@given(pairs, st.floats(1e-3, 1e3))
def test_it_is_recognised_whatever_the_volumes_and_their_unit(volumes, unit):
    """As long as no pair is so heavy that no other matters."""
    edges: dict[Key, Amount] = {}
    total = sum(asked * more for asked, more in volumes)
    for at, (asked, more) in enumerate(volumes):
        edges |= relayed(wl(f"c{at}"), wl(f"s{at}"), asked * unit, asked * more * unit)
    heavy = sum(asked * (1 + more) >= 0.05 * total for asked, more in volumes)
    if heavy >= 2:
        assert RELAY in relays(Graph(edges))
