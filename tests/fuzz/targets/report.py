"""What an enforcer sends the extender."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from extender.cluster import Cluster
from extender.reports.incoming import BadMessage, OutOfBounds
from extender.reports.session import NotYours, ReportSession, SessionCallbacks
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from tests.extender.running import machine, reservation, whole_report
from tests.fuzz.target import Target, must

REFUSED = (BadMessage, OutOfBounds, NotYours, DecodeError)


def stream(data: bytes) -> None:
    """Messages after a node is in step, each after two bytes with its length: whatever one node sends, what is held of
    another stays.
    """
    cluster = Cluster()
    _in_step(cluster, "n2")
    other = cluster.view("n2")
    session = _in_step(cluster, "n1")
    try:
        for body in _cut(data):
            session.receive(pb.FromEnforcer.FromString(body))
    except REFUSED:
        pass
    must(cluster.view("n2") is other, "what a node sends changes nothing of another")
    cluster.picture()


def first(data: bytes) -> None:
    """The first message of a stream."""
    session = ReportSession(Cluster(), SessionCallbacks(), clock=lambda: 0.0, proven="n1")
    try:
        session.receive(pb.FromEnforcer.FromString(data))
    except REFUSED:
        return
    must(session.node == "n1", "nobody speaks for another node")


def _in_step(cluster: Cluster, node: str) -> ReportSession:
    session = ReportSession(cluster, SessionCallbacks(), clock=lambda: 0.0)
    session.receive(pb.FromEnforcer(hello=pb.Hello(node=node, session="s", version="test")))
    session.receive(pb.FromEnforcer(machine=convert.machine_to(machine())))
    session.receive(pb.FromEnforcer(report=whole_report(3, [reservation(f"pod-{node}", "0")])))
    return session


def _cut(data: bytes) -> Iterator[bytes]:
    while data:
        size = int.from_bytes(data[:2], "big")
        yield data[2 : 2 + size]
        data = data[2 + size :]


def _joined(*messages: pb.FromEnforcer) -> bytes:
    bodies = [message.SerializeToString() for message in messages]
    return b"".join(len(body).to_bytes(2, "big") + body for body in bodies)


def _messages() -> Iterator[pb.FromEnforcer]:
    yield pb.FromEnforcer(machine=convert.machine_to(machine(3)))
    yield pb.FromEnforcer(report=whole_report(4, [reservation("a", "0"), reservation("b", "1")]))
    record = pb.DecisionRecord(pod="a", namespace="shop", pod_name="cart-0", container_name="main", numa_nodes="0")
    record.reasons.add(what="kin", number="0.5", effect="NUMA node 0")
    yield pb.FromEnforcer(report=pb.Report(base_generation=3, generation=4, decisions=[record], registered=True))
    device = pb.Device(address="0000:81:00.0", kind="network", driver="mlx5_core", names=["eth0"], numa_node=1)
    threads = [pb.ThreadHealth(name="stream", since_success_s=1.5)]
    health = pb.Health(collector="fexit", threads=threads, devices=[device], devices_left_out=2)
    yield pb.FromEnforcer(heartbeat=pb.Heartbeat(generation=3, health=health))
    flow = pb.Flow(source="a", target="b", kind="tcp", bytes=1000, messages=10, by_server=True)
    yield pb.FromEnforcer(traffic=pb.Traffic(flows=[flow]))
    yield pb.FromEnforcer(hello=pb.Hello(node="n1", session="s", version="test"))


def _streams() -> Iterator[bytes]:
    for message in _messages():
        yield _joined(message)
    yield _joined(*_messages())


def _firsts() -> Iterator[bytes]:
    for message in _messages():
        yield message.SerializeToString()


TARGETS = (Target("report-stream", stream, _streams), Target("report-hello", first, _firsts))
