"""The report stream over real gRPC, from an enforcer's end."""

from __future__ import annotations

import grpc
import pytest

from lab.standins.patience import until
from numakin.placement.state.occupancy import fingerprint
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from tests.extender.reports.differences import ANEW, INVALID, difference
from tests.extender.running import Extender, machine, reservation, welcome, whole_report

RESUME = welcome(resume=True)


def ack(generation: int) -> pb.ToEnforcer:
    return pb.ToEnforcer(ack=pb.Ack(generation=generation))


def test_differences_go_on_where_the_whole_report_ended(extender: Extender):
    enforcer = extender.enforcer("n1")
    a, b = reservation("a", "0"), reservation("b", "1")
    enforcer.report(machine(), a, generation=3)
    enforcer.send(report=difference(3, 4, [a, b], new=[b]))
    assert enforcer.next() == ack(4)
    enforcer.send(report=difference(4, 5, [b], gone=["a"]))
    assert enforcer.next() == ack(5)
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["generation"], node["pods"]) == (5, 1)


def test_a_stream_that_breaks_resumes_without_saying_it_all_again(extender: Extender):
    first = extender.enforcer("n1")
    a, b = reservation("a", "0"), reservation("b", "1")
    first.report(machine(), a, generation=3)
    first.close()
    again = extender.enforcer("n1", acked_generation=3, acked_fingerprint=fingerprint([a], []))
    assert again.next() == RESUME
    again.send(report=difference(3, 4, [a, b], new=[b]))
    assert again.next() == ack(4)


@pytest.mark.parametrize(
    "hello",
    [
        {"acked_generation": 2, "acked_fingerprint": fingerprint([reservation("a", "0")], [])},
        {"acked_generation": 3, "acked_fingerprint": 17},
        {"session": "session-2", "acked_generation": 3, "acked_fingerprint": fingerprint([reservation("a", "0")], [])},
    ],
    ids=["another generation", "another fingerprint", "another session"],
)
def test_everything_is_asked_for_when_the_ends_hold_different_things(extender: Extender, hello):
    extender.enforcer("n1").report(machine(), reservation("a", "0"), generation=3)
    assert extender.enforcer("n1", **hello).next() == ANEW


def test_a_difference_against_an_unknown_generation_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(report=difference(2, 4, []))
    assert enforcer.next() == ANEW
    enforcer.send(report=difference(4, 5, []))
    enforcer.send(machine=convert.machine_to(machine()))
    enforcer.send(report=whole_report(6))
    assert enforcer.next() == ack(6)


def test_a_fingerprint_that_does_not_match_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(report=difference(3, 4, [reservation("a", "0")]))
    assert enforcer.next() == ANEW
    assert 'reports_total{result="fingerprint"} 1.0' in extender.get("/metrics")


def test_a_whole_report_with_another_fingerprint_ends_the_stream(extender: Extender):
    enforcer = extender.enforcer("n1")
    assert enforcer.next() == ANEW
    enforcer.send(machine=convert.machine_to(machine()))
    report = whole_report(1, [reservation("a", "0")])
    report.fingerprint += 1
    enforcer.send(report=report)
    error = enforcer.failure()
    assert (error.code(), error.details()) == (INVALID, "Report: its fingerprint differs from what it gives here")


def test_a_heartbeat_of_another_generation_asks_for_everything(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), generation=3)
    enforcer.send(heartbeat=pb.Heartbeat(generation=3))
    enforcer.send(heartbeat=pb.Heartbeat(generation=4))
    assert enforcer.next() == ANEW


def test_a_second_stream_of_a_node_replaces_the_first(extender: Extender):
    first = extender.enforcer("n1")
    first.report(machine())
    second = extender.enforcer("n1", session="session-2")
    second.report(machine(), reservation("a", "0"))
    error = first.failure()
    assert error.code() is grpc.StatusCode.ABORTED
    assert error.details() == "another stream of node n1 took over"
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["session"], node["connected"], node["pods"]) == ("session-2", True, 1)


def test_a_node_that_left_is_known_still_but_not_connected(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.close()
    until(lambda: not extender.get("/api/v1/nodes")["nodes"][0]["connected"], "the stream's end is seen")
    assert extender.get("/api/v1/nodes")["nodes"][0]["live"]


def test_an_enforcer_that_is_not_registered_with_the_runtime_is_not_live(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    report = difference(1, 2, [])
    report.registered = False
    enforcer.send(report=report)
    assert enforcer.next() == ack(2)
    assert extender.get("/api/v1/nodes")["nodes"][0]["live"] is False


def decision(pod: str, event: str) -> pb.DecisionRecord:
    return pb.DecisionRecord(
        pod=pod, namespace="default", pod_name=f"name-{pod}", container=f"c-{pod}", container_name="main", event=event,
        numa_nodes="0", reasons=[pb.Reason(what="no kin here", effect="the emptiest NUMA node")],
    )  # fmt: skip


def test_what_was_decided_before_our_time_is_explained_and_not_counted(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine(), reservation("a", "0"), earlier=[decision("a", "create")])
    result = extender.get("/api/v1/explain?namespace=default&pod=name-a")
    assert (result["scored"], [entry["event"] for entry in result["happened"]]) == (None, ["create"])
    assert result["happened"][0]["reasons"] == ["no kin here: the emptiest NUMA node"]
    assert "numakin_extender_predictions_total{" not in extender.get("/metrics")


def test_what_is_known_already_is_not_doubled_by_being_told_again(extender: Extender):
    first = extender.enforcer("n1")
    first.report(machine(), reservation("a", "0"), decisions=[decision("a", "create"), decision("a", "synchronize")])
    first.close()
    again = extender.enforcer("n1", "session-2")
    again.report(machine(), reservation("a", "0"), earlier=[decision("a", "synchronize")])
    result = extender.get("/api/v1/explain?namespace=default&pod=name-a")
    assert [entry["event"] for entry in result["happened"]] == ["create", "synchronize"]
