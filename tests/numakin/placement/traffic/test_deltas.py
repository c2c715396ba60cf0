"""Flows that wait to be reported: the words of a server and of a client are kept apart."""

from __future__ import annotations

from numakin.placement.traffic.graph import Deltas, Flow


def test_what_a_pod_serves_and_what_it_asks_on_one_port_is_told_apart():
    both = [Flow("a", "10.0.0.7:80", "tcp", 10, 2, by_server=True), Flow("a", "10.0.0.7:80", "tcp", 5, 1)]
    deltas = Deltas()
    deltas.add(both)
    assert deltas.take(9) == both
