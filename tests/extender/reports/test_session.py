"""One report stream's rules, without the stream."""

from __future__ import annotations

from extender.cluster import Cluster
from extender.reports.session import ReportSession, SessionCallbacks
from extender.state.pods import Changes, NodeRow
from proto import convert
from proto import report_pb2 as pb
from proto.report_format import REPORT_FORMAT
from tests.extender.running import machine, reservation, welcome, whole_report

GONE, HERE = Changes(gone=("n1",)), Changes(rows=(NodeRow("n1"),))
HEARTBEAT = pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=3))
ANEW = welcome(resume=False)


def in_step(cluster: Cluster) -> ReportSession:
    session = ReportSession(cluster, SessionCallbacks(), clock=lambda: 0.0)
    session.receive(pb.FromEnforcer(hello=pb.Hello(node="n1", session="s", version="test", format=REPORT_FORMAT)))
    session.receive(pb.FromEnforcer(machine=convert.machine_to(machine())))
    session.receive(pb.FromEnforcer(report=whole_report(3, [reservation("a", "0")])))
    assert session.in_step
    return session


def test_an_enforcer_whose_node_object_was_made_anew_is_asked_for_everything_again():
    cluster = Cluster()
    session = in_step(cluster)
    for changes in (HERE, GONE, HERE):
        cluster.apply_nodes(changes)
    assert session.receive(HEARTBEAT) == [ANEW]


def test_an_enforcer_whose_node_object_is_gone_is_left_alone():
    cluster = Cluster()
    session = in_step(cluster)
    for changes in (HERE, GONE):
        cluster.apply_nodes(changes)
    assert session.receive(HEARTBEAT) == []
