"""Enforcers of other versions than the extender's, over real gRPC: served, and named as what they are."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from lab.standins.patience import PATIENCE_S, until
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Allocation, Reservation, fingerprint
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc
from numakin.wire.report_format import REPORT_FORMAT
from tests.extender.running import Extender, machine, recorded, reservation, welcome, whole_report

FORMAT_0 = Path(__file__).parents[2] / "recordings" / "report-stream" / "format-0.enforcer"
PAGE = "/api/v1/node?node=node-1"
NEWER = {"format": REPORT_FORMAT + 1, "version": "9.9.9"}

OTHER_FIELD = b"\xa2\x06\x03new"
"""Field 100, of no message here."""

FINGERPRINTS = {1: 0x478B70D841891A0E, 2: 0x5883184EF25B3801}
"""Of `PLACEMENTS`, by the format; format 1 knew of nobody let out."""

PLACEMENTS = (
    [
        Reservation(
            "p/a",
            "p",
            "ns/g",
            NumaSet.parse("0-1"),
            Demand(1500, 1 << 30),
            pool="reserved",
            alone=True,
            size=3,
            let_out=NumaSet.parse("0-2"),
        )
    ],
    [Allocation("c1", "app", "p", "p/a", CpuSet.parse("0-3"), NumaSet.parse("0"), exclusive=CpuSet.parse("0-1"))],
)


def messages(file: Path) -> Iterator[pb.FromEnforcer]:
    body = file.read_bytes()
    while body:
        (length,) = struct.unpack(">I", body[:4])
        yield pb.FromEnforcer.FromString(body[4 : 4 + length])
        body = body[4 + length :]


def with_unknown(message: pb.FromEnforcer) -> pb.FromEnforcer:
    return pb.FromEnforcer.FromString(message.SerializeToString() + OTHER_FIELD)


def test_what_a_fingerprint_is_made_of_changes_with_the_format_alone():
    assert fingerprint(*PLACEMENTS) == FINGERPRINTS[REPORT_FORMAT], "raise REPORT_FORMAT, and record the one before"


def test_a_recorded_enforcer_of_the_format_before_is_served_and_named(extender: Extender):
    sent = list(messages(FORMAT_0))
    with grpc.insecure_channel(extender.grpc_address) as channel:
        answers = rpc.ReportsStub(channel).Stream(iter(sent), timeout=PATIENCE_S)
        received = list(answers)
    generations = [message.report.generation for message in sent if message.HasField("report")]
    assert received[0] == welcome(resume=False)
    assert [answer.ack.generation for answer in received if answer.HasField("ack")] == generations
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["pods"], node["skewed"], node["report_format"], node["version"]) == (3, True, 0, "0.1.0")
    _, story = until(lambda: shown if (shown := extender.ask("GET", PAGE))[0] == 200 else None, "the page has it")
    (warning,) = [row for row in story["warnings"] if "format" in row["what"]]
    assert "(0.1.0) has report format 0" in warning["what"]
    assert "an enforcer speaks another report format" in extender.log.read_text()


def test_it_is_scored_as_any_other(extender: Extender):
    enforcer = extender.enforcer("node-1", format=0)
    enforcer.report(machine(), fingerprint=1)
    body = recorded("basic-nodecache-true.prioritize", opted_in=True)
    before = extender.scores(body)
    assert set(before.values()) == {0}
    named = next(iter(before))
    there = extender.enforcer(named, format=0)
    there.report(machine(), fingerprint=1)
    assert extender.scores(body)[named] > 0


def test_skewed_enforcers_are_counted_until_they_are_upgraded(extender: Extender):
    enforcer = extender.enforcer("n1", **NEWER)
    enforcer.report(machine(), fingerprint=1)
    assert "numakin_extender_skewed_enforcers 1.0" in extender.get("/metrics")
    upgraded = extender.enforcer("n1", session="session-2")
    upgraded.report(machine())
    assert "numakin_extender_skewed_enforcers 0.0" in extender.get("/metrics")
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert not node["skewed"]


def test_a_newer_enforcers_unknown_fields_and_kinds_of_messages_are_passed_over(extender: Extender):
    enforcer = extender.enforcer("n1", **NEWER)
    assert enforcer.next() == welcome(resume=False)
    for message in (
        pb.FromEnforcer(machine=convert.machine_to(machine())),
        pb.FromEnforcer(),
        pb.FromEnforcer(report=whole_report(1, [reservation("a", "0")])),
    ):
        enforcer.pass_on(with_unknown(message))
    assert enforcer.next().ack.generation == 1
    assert 'numakin_extender_reports_total{result="unknown_kind"} 1.0' in extender.get("/metrics")
    (node,) = extender.get("/api/v1/nodes")["nodes"]
    assert (node["pods"], node["version"]) == (1, "9.9.9")


def test_an_enforcer_from_before_devices_were_reported_shows_none(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.report(machine())
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=pb.Health(collector="fexit", runtime="registered")))
    story = until(lambda: _healthy(extender), "its health is shown")
    assert (story["devices"], story["devices_left_out"]) == ([], 0)


def test_what_a_newer_enforcer_says_of_its_devices_beside_what_is_known_is_passed_over(extender: Extender):
    enforcer = extender.enforcer("n1", **NEWER)
    enforcer.report(machine())
    device = pb.Device.FromString(pb.Device(address="0000:81:00.0", kind="tachyonic").SerializeToString() + OTHER_FIELD)
    enforcer.send(heartbeat=pb.Heartbeat(generation=1, health=pb.Health(devices=[device])))
    (shown,) = until(lambda: _healthy(extender), "its devices are shown")["devices"]
    assert (shown["address"], shown["kind"]) == ("0000:81:00.0", "tachyonic")


def test_an_enforcer_from_before_replicas_were_counted_reads_the_rest_of_a_nomination():
    sent = pb.Expect(pod="uid-1", planned="0-1", replicas=[pb.ReplicaCount(workload="ns/Deployment/web", bound=2)])
    received = before_replicas().FromString(sent.SerializeToString())
    assert (received.pod, received.planned) == ("uid-1", "0-1")
    assert pb.Expect.FromString(received.SerializeToString()) == sent, "and passes it over, as it is"


def before_replicas() -> Any:
    """The message Expect as it was."""
    file = FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    (expect,) = (message for message in file.message_type if message.name == "Expect")
    (replicas,) = (field for field in expect.field if field.name == "replicas")
    expect.field.remove(replicas)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("numakin.v1.Expect"))


def _healthy(extender: Extender) -> Any:
    """The health of n1's enforcer, as the page has it."""
    status, story = extender.ask("GET", "/api/v1/node?node=n1")
    return story["enforcer"]["health"] if status == 200 else None


@pytest.mark.parametrize("format_", [0, REPORT_FORMAT + 1])
def test_a_lost_difference_is_noticed_without_fingerprints_too(extender: Extender, format_: int):
    enforcer = extender.enforcer("n1", format=format_)
    enforcer.report(machine(), reservation("a", "0"), generation=3, fingerprint=1)
    enforcer.send(report=pb.Report(generation=5, base_generation=4, fingerprint=2, gone_reservations=["a"]))
    assert enforcer.next() == welcome(resume=False)


def test_enforcers_of_its_own_format_are_still_checked(extender: Extender):
    enforcer = extender.enforcer("n1")
    enforcer.next()
    enforcer.send(machine=convert.machine_to(machine()))
    enforcer.send(report=pb.Report(generation=1, fingerprint=17))
    assert "its fingerprint differs" in (enforcer.failure().details() or "")
    until(lambda: 'result="refused"} 1.0' in extender.get("/metrics"), "it is counted")
