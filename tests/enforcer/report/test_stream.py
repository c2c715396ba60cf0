"""The streams to the extender, over real gRPC: told once, resumed after a break, nominations handed on; every replica has
one.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from enforcer.local import report_differences
from enforcer.report.backlog import ReportBacklog
from enforcer.report.mirror import Mirror
from enforcer.report.replicas import KnownReplica, Replicas, resolve
from enforcer.report.stream import MOST_WAITING, Endpoint, ReportStream
from lab.standins.patience import PATIENCE_S, until
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Occupancy, Reservation
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc
from numakin.wire.report_format import REPORT_FORMAT
from tests.enforcer.report.listening import Extender
from tests.supervised import threads

OTHER_FIELD = b"\xa2\x06\x03new"
"""Field 100, of no message here."""


class Running:
    """A real server, and a stream to it in its thread."""

    def __init__(self, extender: Extender, heartbeat_s: float = 0.2) -> None:
        self.extender = extender
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        report_pb2_grpc.add_ReportsServicer_to_server(extender, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.mirror = Mirror()
        self.mirror.started(local.Start(node="n1", session="s", machine=pb.Machine(name="m")))
        self.occupancy = Occupancy(generation=1)
        self.mirror.reported(
            report_differences.report(None, report_differences.ReportedNode(self.occupancy, registered=True))
        )
        self.lock = threading.Lock()
        self.expected: list[pb.Expect] = []
        self.got = threading.Event()
        self.stream = ReportStream(
            Endpoint(f"127.0.0.1:{port}"), ReportBacklog(self.mirror), self.lock, self._expect,
            version="1", heartbeat_s=heartbeat_s, threads=threads(),
        )  # fmt: skip
        self.stream.start()

    def _expect(self, expect: pb.Expect) -> None:
        self.expected.append(expect)
        self.got.set()

    def reservation(self, pod: str) -> None:
        before = self.occupancy
        self.occupancy = before.with_reservation(Reservation(pod, pod, "ns/g", NumaSet.parse("0"), Demand(1000)))
        with self.lock:
            self.mirror.reported(
                report_differences.report(
                    report_differences.ReportedNode(before, registered=True),
                    report_differences.ReportedNode(self.occupancy, registered=True),
                    (),
                )
            )
        self.stream.changed()

    def close(self) -> None:
        self.stream.stop()
        self.server.stop(None)
        self.stream.stop(PATIENCE_S)
        assert not self.stream.alive


@pytest.fixture
def running() -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def run(extender: Extender, **options: float) -> Running:
        made.append(Running(extender, **options))
        return made[-1]

    yield run
    for entry in made:
        entry.close()


def test_hello_then_the_machine_then_everything(running: Callable[..., Running]) -> None:
    extender = Extender()
    running(extender)
    assert extender.wait_for(lambda kinds: len(kinds) >= 3)[:3] == ["hello", "machine", "report"]
    assert extender.heard[2].report.base_generation == 0


@pytest.mark.parametrize("other", [{"format": 0, "version": ""}, {"format": REPORT_FORMAT + 1, "version": "9.9.9"}])
def test_an_extender_of_another_format_is_named_and_served(
    running: Callable[..., Running], other: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    extender = Extender(**other)
    unknown = pb.ToEnforcer.FromString(OTHER_FIELD)
    expect = pb.ToEnforcer(expect=pb.Expect(pod="uid-1"))
    extender.to_send = [unknown, pb.ToEnforcer.FromString(expect.SerializeToString() + OTHER_FIELD)]
    first = running(extender)
    extender.wait_for(lambda kinds: kinds.count("heartbeat") >= 2)
    assert extender.heard[0].hello.format == REPORT_FORMAT
    assert first.got.wait(PATIENCE_S)
    assert [expected.pod for expected in first.expected] == ["uid-1"]
    assert first.stream.skewed
    (record,) = (line for line in caplog.records if "another report format" in line.getMessage())
    assert record.levelname == "WARNING"
    assert record.__dict__["fields"]["extender_version"] == (other["version"] or "unknown")


def test_one_of_the_same_format_is_not(running: Callable[..., Running]) -> None:
    extender = Extender()
    first = running(extender)
    extender.wait_for(lambda kinds: "report" in kinds)
    assert not first.stream.skewed


def test_a_change_is_told_at_once_and_an_unchanged_node_only_shows_that_it_lives(
    running: Callable[..., Running],
) -> None:
    extender = Extender()
    first = running(extender)
    extender.wait_for(lambda kinds: "report" in kinds)
    first.reservation("a")
    extender.wait_for(lambda kinds: kinds.count("report") == 2)
    extender.wait_for(lambda kinds: kinds.count("heartbeat") >= 3)
    assert extender.kinds().count("report") == 2
    assert all(message.ByteSize() <= 10 for message in extender.heard if message.HasField("heartbeat"))


def test_a_broken_stream_is_opened_anew_and_goes_on_with_what_is_new(running: Callable[..., Running]) -> None:
    extender = Extender(resume=True)
    first = running(extender)
    first.reservation("a")
    extender.wait_for(lambda kinds: any(m.report.generation == 2 for m in extender.heard if m.HasField("report")))
    extender.wait_for(lambda kinds: "heartbeat" in kinds)
    extender.cut.set()
    extender.wait_for(lambda kinds: kinds.count("hello") == 2)
    first.reservation("b")
    extender.wait_for(lambda kinds: any(m.report.generation == 3 for m in extender.heard if m.HasField("report")))
    assert extender.kinds().count("machine") == 1
    last = next(m.report for m in extender.heard if m.HasField("report") and m.report.generation == 3)
    assert [reservation.key for reservation in last.reservations] == ["b"]


def test_many_changes_at_one_moment_cost_no_traffic(running: Callable[..., Running]) -> None:
    """As when a node's pods start all at once while a stream waits."""
    extender = Extender()
    first = running(extender)
    extender.wait_for(lambda kinds: "report" in kinds)
    with first.lock:
        for _ in range(2 * MOST_WAITING):
            first.stream.changed()
        first.stream.send(pb.FromEnforcer(traffic=pb.Traffic(seconds=10)))
    extender.wait_for(lambda kinds: "traffic" in kinds)


def test_a_nomination_is_handed_on(running: Callable[..., Running]) -> None:
    extender = Extender()
    extender.to_send.append(pb.ToEnforcer(expect=pb.Expect(pod="p", numa_nodes="1")))
    first = running(extender)
    assert first.got.wait(PATIENCE_S)
    assert first.expected[0].numa_nodes == "1"


class Fleet:
    """Replicas of the extender, each at an address of its own, and a node's streams to those that the name has now."""

    NAME = "extender.test:1"

    def __init__(self) -> None:
        self.replicas: dict[str, Extender] = {}
        self.servers: dict[str, grpc.Server] = {}
        self.names: tuple[str, ...] = ()
        self.expected: queue.Queue[str] = queue.Queue()
        self.mirror = Mirror()
        self.mirror.started(local.Start(node="n1", session="s", machine=pb.Machine(name="m")))
        self.mirror.reported(
            report_differences.report(None, report_differences.ReportedNode(Occupancy(generation=1), registered=True))
        )
        self.lock = threading.Lock()
        self.threads = threads()
        self.streams = Replicas([Endpoint(self.NAME)], self._stream, self._resolve, threads=self.threads)

    def add(self) -> str:
        extender, server = Extender(), grpc.server(futures.ThreadPoolExecutor(4))
        report_pb2_grpc.add_ReportsServicer_to_server(extender, server)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.replicas[address], self.servers[address] = extender, server
        self.names = (*self.names, address)
        return address

    def lose(self, address: str) -> None:
        self.names = tuple(name for name in self.names if name != address)
        self.servers[address].stop(None)

    def _resolve(self, name: str) -> tuple[str, ...]:
        assert name == self.NAME
        if not self.names:
            raise OSError("no such name")
        return self.names

    def _stream(self, endpoint: Endpoint, broken: Callable[[], None]) -> ReportStream:
        received = self.expected.put
        return ReportStream(
            endpoint, ReportBacklog(self.mirror), self.lock, lambda entry: received(entry.pod), broken,
            version="1", heartbeat_s=0.2, threads=self.threads,
        )  # fmt: skip

    def close(self) -> None:
        self.streams.stop()
        for server in self.servers.values():
            server.stop(None)
        self.streams.stop(PATIENCE_S)
        until(lambda: not self.threads.standings(), "all have ended")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    yield made
    made.close()


def test_every_address_of_the_extenders_name_is_told_everything_and_all_traffic(fleet: Fleet) -> None:
    addresses = [fleet.add() for _ in range(2)]
    fleet.streams.start()
    for address in addresses:
        fleet.replicas[address].wait_for(lambda kinds: "heartbeat" in kinds)
        assert fleet.replicas[address].kinds()[:3] == ["hello", "machine", "report"]
    assert fleet.streams.connected == 2
    fleet.streams.send(pb.FromEnforcer(traffic=pb.Traffic(collector="x")))
    for address in addresses:
        fleet.replicas[address].wait_for(lambda kinds: "traffic" in kinds)


def test_a_nomination_of_any_replica_is_handed_on(fleet: Fleet) -> None:
    for pod in ("a", "b"):
        fleet.replicas[fleet.add()].to_send.append(pb.ToEnforcer(expect=pb.Expect(pod=pod)))
    fleet.streams.start()
    assert {fleet.expected.get(timeout=PATIENCE_S) for _ in range(2)} == {"a", "b"}


def test_a_replica_that_takes_the_place_of_another_is_found_when_that_ones_stream_breaks(fleet: Fleet) -> None:
    first, second = fleet.add(), fleet.add()
    fleet.streams.start()
    for entry in (first, second):
        fleet.replicas[entry].wait_for(lambda kinds: "report" in kinds)
    third = fleet.add()
    fleet.lose(first)
    fleet.replicas[third].wait_for(lambda kinds: kinds[:3] == ["hello", "machine", "report"])
    assert fleet.replicas[second].kinds().count("hello") == 1


def test_it_is_known_that_the_extenders_name_has_no_address(fleet: Fleet) -> None:
    fleet.streams.start()
    until(lambda: fleet.streams.trouble == f"{fleet.NAME}: no such name", "the name service's failure is known")


def test_it_is_known_why_a_replica_is_told_nothing(fleet: Fleet) -> None:
    first = fleet.add()
    fleet.streams.start()
    until(lambda: fleet.streams.connected == 1, "it is told")
    assert fleet.streams.trouble == ""
    fleet.servers[first].stop(None)
    until(lambda: fleet.streams.trouble.startswith(f"{first}: UNAVAILABLE: "), "the broken stream's error is known")


def test_a_name_service_that_fails_ends_no_stream(fleet: Fleet) -> None:
    first = fleet.add()
    fleet.streams.start()
    fleet.replicas[first].wait_for(lambda kinds: "report" in kinds)
    fleet.names = ()
    fleet.replicas[first].cut.set()
    fleet.replicas[first].wait_for(lambda kinds: kinds.count("hello") == 2)
    received = len(fleet.replicas[first].heard)
    fleet.replicas[first].wait_for(lambda kinds: len(kinds) > received + 1)


def test_at_most_five_replicas_are_told_those_first_that_are_already() -> None:
    known = KnownReplica({}).after("x:1", [f"10.0.0.{number}:1" for number in range(1, 8)])
    opened = {"10.0.0.7:1", "10.0.0.6:1"}
    assert list(known.wanted(opened)) == ["10.0.0.6:1", "10.0.0.7:1", "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"]
    assert known.left_out == 2


def test_a_name_that_has_no_address_now_keeps_those_that_it_had() -> None:
    known = KnownReplica({}).after("x:1", ["10.0.0.1:1"]).after("x:1", [])
    assert known.wanted(()) == {"10.0.0.1:1": "x:1"}


@pytest.mark.parametrize(
    ("name", "addresses"),
    [("127.0.0.1:8081", ("127.0.0.1:8081",)), ("[::1]:8081", ("[::1]:8081",))],
)
def test_an_address_stands_for_itself(name: str, addresses: tuple[str, ...]) -> None:
    assert resolve(name) == addresses


@pytest.mark.parametrize("host", ["extender..svc", "x" * 64])
def test_what_can_be_no_name_has_no_address_now(host: str) -> None:
    """The other names are dialled all the same."""
    with pytest.raises(OSError, match="it can be no name"):
        resolve(f"{host}:8081")


def test_a_name_with_addresses_of_two_families_has_those_of_one() -> None:
    assert len({entry.startswith("[") for entry in resolve("localhost:8081")}) == 1
