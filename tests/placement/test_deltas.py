"""Flows wait to be reported: summed, heaviest first, bounded; the words of a server and of a client are kept apart."""

from __future__ import annotations

from placement.traffic import Deltas, Flow


def test_flows_of_one_edge_add_up():
    deltas = Deltas()
    deltas.add([Flow("a", "10.0.0.7:80", "tcp", 10, 1), Flow("a", "10.0.0.7:80", "tcp", 5, 2)])
    assert deltas.take(9) == [Flow("a", "10.0.0.7:80", "tcp", 15, 3)]
    assert len(deltas) == 0


def test_what_a_pod_serves_and_what_it_asks_on_one_port_is_told_apart():
    both = [Flow("a", "10.0.0.7:80", "tcp", 10, 2, by_server=True), Flow("a", "10.0.0.7:80", "tcp", 5, 1)]
    deltas = Deltas()
    deltas.add(both)
    assert deltas.take(9) == both


def test_the_heaviest_are_told_first_and_the_rest_waits():
    deltas = Deltas()
    deltas.add([Flow("a", f"10.0.0.{at}:80", "tcp", at, at) for at in range(1, 6)])
    assert [one.messages for one in deltas.take(2)] == [5, 4]
    assert [one.messages for one in deltas.take(9)] == [3, 2, 1]


def test_no_more_wait_than_the_cap_and_the_lightest_go():
    deltas = Deltas(most_edges=2)
    deltas.add([Flow("a", f"10.0.0.{at}:80", "tcp", at, at) for at in range(1, 6)])
    assert (len(deltas), deltas.dropped) == (2, 3)
    assert [one.messages for one in deltas.take(9)] == [5, 4]
