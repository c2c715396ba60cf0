"""One report stream's rules, without the stream."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.reports import incoming
from extender.reports.incoming import BadMessage
from extender.reports.session import ReportSession, SessionCallbacks
from extender.state import node_view
from extender.state.pods import Changes, NodeRow
from numakin.placement.state.occupancy import fingerprint
from numakin.placement.traffic.graph import Flow
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from numakin.wire.report_format import REPORT_FORMAT
from tests.extender.running import machine, reservation, welcome, whole_report

GONE, HERE = Changes(gone=("n1",)), Changes(rows=(NodeRow("n1"),))
HEARTBEAT = pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=3))
ANEW = welcome(resume=False)


def in_step(cluster: Cluster, taps: SessionCallbacks | None = None) -> ReportSession:
    session = ReportSession(cluster, taps or SessionCallbacks(), clock=lambda: 0.0)
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


def test_an_enforcer_that_reports_without_a_node_object_is_answered_and_known_again_with_one():
    cluster = Cluster()
    session = in_step(cluster)
    for changes in (HERE, GONE):
        cluster.apply_nodes(changes)
    held = [reservation("a", "0"), reservation("b", "0")]
    for generation, known in ((4, False), (5, True)):
        report = whole_report(generation, held, fingerprint=fingerprint(held, []))
        report.base_generation = generation - 1
        (answer,) = session.receive(pb.FromEnforcer(report=report))
        assert answer.ack.generation == generation
        assert (cluster.view("n1") is not None) == known
        cluster.apply_nodes(HERE)


def test_traffic_is_handed_on_with_the_node_that_saw_it():
    class Taps(SessionCallbacks):
        def traffic(self, node: str, flows: tuple[Flow, ...]) -> None:
            seen.extend((node, flow.source, flow.target, flow.bytes) for flow in flows)

    seen: list[tuple[str, str, str, float]] = []
    session = in_step(Cluster(), Taps())
    flows = [pb.Flow(source="a", target="b", kind="tcp", bytes=3000, messages=3)]
    assert session.receive(pb.FromEnforcer(traffic=pb.Traffic(seconds=10, scale=1, flows=flows))) == []
    assert seen == [("n1", "a", "b", 3000)]


def test_what_no_report_is_over_a_bound_with_many_may_not_be_together(monkeypatch: pytest.MonkeyPatch):
    """The enforcer is asked for everything, and that is refused by name."""
    monkeypatch.setattr(node_view, "RESERVATIONS", 2)
    session = in_step(Cluster())
    held = [reservation("a", "0")]
    for generation, pod in ((4, "b"), (5, "c")):
        held.append(reservation(pod, "0"))
        report = whole_report(generation, held[-1:], fingerprint=fingerprint(held, []))
        report.base_generation = generation - 1
        answers = session.receive(pb.FromEnforcer(report=report))
    assert answers == [ANEW]
    session.receive(pb.FromEnforcer(machine=convert.machine_to(machine())))
    with pytest.raises(BadMessage, match="Report: with it the node has over 10000 reservations, 20000"):
        session.receive(pb.FromEnforcer(report=whole_report(6, held)))


def test_sizes_of_hugepages_do_not_add_up_without_end():
    session = in_step(Cluster())
    for generation in (4, 5):
        sizes = range(generation * 100, generation * 100 + 16)
        pages = [pb.FreePages(numa_node=numa_node, size=size) for numa_node in (0, 1) for size in sizes]
        report = whole_report(generation, free_hugepages=pages, fingerprint=fingerprint([reservation("a", "0")], []))
        report.base_generation = generation - 1
        answers = session.receive(pb.FromEnforcer(report=report))
    assert answers == [ANEW]


def test_machines_are_kept_but_for_one_of_invented_length(monkeypatch: pytest.MonkeyPatch):
    message = convert.machine_to(machine())
    assert incoming.machine(message)[0] is incoming.machine(message)[0]
    monkeypatch.setattr(incoming, "MACHINE_BYTES", 10)
    first, second = incoming.machine(message)[0], incoming.machine(message)[0]
    assert first == second
    assert first is not second
