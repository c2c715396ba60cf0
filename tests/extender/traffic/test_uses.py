"""What pods of a workload use, by what each node says of it."""

from __future__ import annotations

from extender.traffic.uses import FRESH_S, MOST_NODES, MOST_WORKLOADS, REST_S, WorkloadUses

WEB, DB = "shop/Deployment/web", "shop/StatefulSet/db"


def test_it_is_the_most_that_any_node_saw_lately():
    uses = WorkloadUses()
    uses.reported("n1", {WEB: 300}, 0.0)
    uses.reported("n2", {WEB: 900}, 1.0)
    uses.reported("n1", {WEB: 400}, 2.0)
    assert uses.known(2.0) == {WEB: 900}
    uses.reported("n2", {WEB: 200}, 3.0)
    assert uses.known(3.0) == {WEB: 400}


def test_a_node_that_fell_silent_does_not_count_while_others_speak():
    uses = WorkloadUses()
    uses.reported("gone", {WEB: 4000}, 0.0)
    uses.reported("n1", {WEB: 300}, FRESH_S)
    assert uses.known(FRESH_S + 1) == {WEB: 300}


def test_the_last_figure_stays_for_pods_that_come_back_and_not_for_ever():
    uses = WorkloadUses()
    uses.reported("n1", {WEB: 300}, 0.0)
    assert uses.known(REST_S) == {WEB: 300}
    assert uses.known(REST_S + 1) == {}


def test_what_was_written_down_gives_way_to_the_first_node_that_speaks():
    uses = WorkloadUses()
    uses.reported("n1", {DB: 100}, 0.0)
    uses.restored({WEB: 5000, DB: 7000}, 0.0)
    assert uses.known(0.0) == {WEB: 5000, DB: 100}
    uses.reported("n1", {WEB: 200}, 1.0)
    assert uses.known(1.0) == {WEB: 200, DB: 100}


def test_no_more_is_kept_than_the_bounds():
    uses = WorkloadUses()
    for number in range(MOST_NODES + 3):
        uses.reported(f"n{number}", {WEB: 1000 - number}, 0.0)
    assert uses.known(0.0) == {WEB: 1000 - 3}, "the first three nodes are forgotten"
    uses.reported("n0", {f"shop/Deployment/w{number}": 1 for number in range(MOST_WORKLOADS)}, 1.0)
    assert len(uses.known(1.0)) == MOST_WORKLOADS
    assert WEB not in uses.known(1.0)
