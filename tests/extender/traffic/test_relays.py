"""Relays join nobody's groups, and have their own."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.state.pods import Changes, PodRow
from extender.traffic.communities import partition
from extender.traffic.known import TrafficLearning
from extender.views.traffic_view import graph
from numakin.placement.traffic.graph import Flow

RELAY = "shop/DaemonSet/proxy"


def wl(name: str) -> str:
    return f"shop/Deployment/{name}"


def groups_with(seed: int) -> tuple[dict[tuple[str, str], float], set[str]]:
    """Groups whose members talk with each other, and all of them with the relay."""
    random = Random(seed)
    weights: dict[tuple[str, str], float] = {}
    names = []
    for group in range(random.randint(2, 5)):
        members = [wl(f"g{group}-{at}") for at in range(random.randint(2, 5))]
        names += members
        for at, member in enumerate(members):
            for other in members[:at]:
                weights[other, member] = random.uniform(1, 2)
    for name in names:
        weights[RELAY, name] = random.uniform(1, 50)
    return weights, {*names, RELAY}


@given(st.integers(0, 10_000))
def test_a_relay_changes_nobody_s_group_and_has_its_own(seed):
    weights, everybody = groups_with(seed)
    alone = {pair: weight for pair, weight in weights.items() if RELAY not in pair}
    with_it = partition(weights, everybody, {}, relays={RELAY})
    without = partition(alone, everybody - {RELAY}, {})
    assert {entry: member for entry, member in with_it.members.items() if entry != RELAY} == without.members
    most = max(weights[RELAY, entry] for entry in everybody - {RELAY})
    own = with_it.members.get(RELAY)
    drawn = {group: sum(weights[RELAY, entry] for entry in members) for group, members in without.groups().items()}
    assert own is None or drawn[own.group] == max(drawn.values()) >= most
    if own:
        assert own.relay
        assert own.reason.startswith("a relay: passes on what it receives; exchanges ")


def test_a_relay_whose_group_is_named_stays_in_it_and_draws_nobody_in():
    weights = {(wl("a"), wl("b")): 1.0, (RELAY, wl("a")): 50.0, (RELAY, wl("b")): 50.0}
    made = partition(weights, {wl("a"), wl("b")}, {RELAY: "shop/own"}, relays={RELAY})
    assert made.groups() == {"shop/auto-a": [wl("a"), wl("b")]}


def test_a_group_that_a_relay_had_glued_falls_apart():
    """What was found before the relay was recognised."""
    weights = {(wl("a"), wl("b")): 5.0, (wl("x"), wl("y")): 5.0} | {(RELAY, entry): 60.0 for entry in map(wl, "abxy")}
    everybody = {RELAY, *map(wl, "abxy")}
    glued = partition(weights, everybody, {})
    assert len(glued.groups()) == 1
    made = partition(weights, everybody, {}, glued, {RELAY})
    apart = [{*members} - {RELAY} for members in made.groups().values()]
    assert sorted(map(sorted, apart)) == [[wl("a"), wl("b")], [wl("x"), wl("y")]]


def row(name: str, ip: str) -> PodRow:
    return PodRow(name, "shop", name, node="n", ip=ip, annotations={"group.numakin.io": "auto"})


def test_what_is_learned_says_who_is_a_relay():
    """And pods go on being near to those that they exchange with, the relay too."""
    learning = TrafficLearning()
    names = ["a", "b", "x", "y", "relay"]
    rows = {name: row(name, f"10.0.0.{at}") for at, name in enumerate(names, 1)}
    learning.apply(Changes(rows=tuple(rows.values())), 0.0)
    flows = []
    for client, server, asked, answered in (("a", "b", 100, 2000), ("x", "y", 300, 5000)):
        for first, other in ((client, "relay"), ("relay", server)):
            flows += [Flow(first, other, "tcp", asked * 1000, 100), Flow(other, first, "tcp", answered * 1000, 100)]
    flows += [Flow("a", "b", "unix", 9000, 90), Flow("x", "y", "unix", 9000, 90)]
    learning.receive("n", flows, 1.0)
    known = learning.known(2.0)
    a, b, x, y, relay = (rows[name].workload for name in names)
    assert known.relays == {relay}
    assert known.groups[a] == known.groups[b] != known.groups[x] == known.groups[y]
    assert known.found.members[relay].relay
    assert known.peers[a].keys() == {b, relay}
    assert graph(known)["relays"] == [relay]
