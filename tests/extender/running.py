"""The extender as a real process, kube-scheduler's side of its HTTP port, and an enforcer's side of its gRPC port."""

from __future__ import annotations

import http.client
import json
import queue
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from urllib3.util.wait import wait_for_read

from lab.standins.extender import ExtenderProcess
from lab.standins.patience import PATIENCE_S
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.state.occupancy import Allocation, Reservation, fingerprint
from numakin.process.version import VERSION
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc
from numakin.wire.report_format import REPORT_FORMAT
from tests import forked

GIB = 1 << 30
RECORDINGS = Path(__file__).parent.parent / "recordings" / "kube-scheduler"


def recorded(name: str, *, opted_in: bool = False) -> bytes:
    body = (RECORDINGS / f"{name}.raw").read_bytes()
    return body.replace(b"numa.example/affinity-group", b"group.numakin.io") if opted_in else body


def machine(numa_nodes: int = 2, cpus: int = 8, memory: int = 16 * GIB) -> Machine:
    """NUMA nodes of `cpus` CPUs each, 10 at home and 20 between any two."""
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                number,
                CpuSet.of(range(number * cpus, (number + 1) * cpus)),
                memory,
                {other: 10 if other == number else 20 for other in range(numa_nodes)},
            )
            for number in range(numa_nodes)
        ),
        cores=tuple(CpuSet.of((cpu,)) for cpu in range(numa_nodes * cpus)),
        name="plain",
    )


def reservation(pod: str, numa_nodes: str, *, group: str = "default/shop", milli: int = 1000) -> Reservation:
    return Reservation(pod, pod, group, NumaSet.parse(numa_nodes), Demand(cpu_milli=milli, memory=GIB))


def whole_report(
    generation: int, reservations: Iterable[Reservation] = (), allocations: Iterable[Allocation] = (), **more: Any
) -> pb.Report:
    reservations, allocations = list(reservations), list(allocations)
    fields = {"fingerprint": fingerprint(reservations, allocations), "registered": True} | more
    return pb.Report(
        generation=generation,
        reservations=map(convert.reservation_to, reservations),
        allocations=map(convert.allocation_to, allocations),
        **fields,
    )


def welcome(*, resume: bool) -> pb.ToEnforcer:
    """The extender's first answer."""
    return pb.ToEnforcer(welcome=pb.Welcome(resume=resume, format=REPORT_FORMAT, version=VERSION))


class Enforcer:
    """One node's end of the report stream."""

    def __init__(
        self,
        address: str,
        node: str,
        session: str = "session-1",
        token: str = "",
        channel: grpc.Channel | None = None,
        **hello: Any,
    ) -> None:
        metadata = [("authorization", f"Bearer {token}")] if token else None
        self._channel = channel or grpc.insecure_channel(address)
        self._out: queue.Queue[pb.FromEnforcer | None] = queue.Queue()
        self._before_ack: deque[pb.ToEnforcer] = deque()
        self.namespaces = pb.Namespaces()
        self._answers = rpc.ReportsStub(self._channel).Stream(
            iter(self._out.get, None), timeout=PATIENCE_S, metadata=metadata
        )
        self.send(hello=pb.Hello(node=node, session=session, **{"version": "test", "format": REPORT_FORMAT} | hello))

    def send(self, **message: Any) -> None:
        self.pass_on(pb.FromEnforcer(**message))

    def pass_on(self, message: pb.FromEnforcer) -> None:
        self._out.put(message)

    def next(self) -> pb.ToEnforcer:
        return self._before_ack.popleft() if self._before_ack else self._next()

    def _next(self) -> pb.ToEnforcer:
        """What operators have set on namespaces is kept, and passed over: it may come at any time."""
        while (message := next(self._answers)).HasField("namespaces"):
            self.namespaces = message.namespaces
        return message

    def report(self, machine: Machine, *reservations: Reservation, generation: int = 1, **more: Any) -> None:
        """Machine and a whole report, up to its acknowledgement. A nomination may come before that: it stays the next."""
        assert self.next() == welcome(resume=False)
        self.send(machine=convert.machine_to(machine))
        self.send(report=whole_report(generation, reservations, **more))
        while (message := self._next()) != pb.ToEnforcer(ack=pb.Ack(generation=generation)):
            assert message.HasField("expect"), message
            self._before_ack.append(message)

    def failure(self) -> grpc.RpcError:
        """The error that ends the stream."""
        try:
            for _ in self._answers:
                pass
        except grpc.RpcError as error:
            return error
        raise AssertionError("the stream ended without an error")

    def close(self) -> None:
        self._out.put(None)
        self._answers.cancel()
        self._channel.close()


class Extender:
    """A running numakin-extender; an HTTP connection to kube-scheduler's port, kept alive, and one to people's."""

    def __init__(self, directory: Path, *options: str, **program: Any) -> None:
        """program: as ExtenderProcess takes it. By default it is forked (tests/forked.py)."""
        own = ("--no-kube", "--log-level", "debug", "--log-format", "json", "--report-timeout", "3600")
        begin = {"begin": forked.extender} if sys.executable == forked.PYTHON else {}
        self.program = ExtenderProcess(directory, (*own, *options), **(program or begin))
        self._enforcers: list[Enforcer] = []
        self.start()

    @property
    def http_address(self) -> str:
        return self.program.http

    @property
    def web_address(self) -> str:
        return self.program.web

    @property
    def grpc_address(self) -> str:
        return self.program.grpc

    @property
    def log(self) -> Path:
        return self.program.log

    def start(self) -> None:
        """Again, after an end: at the same addresses."""
        self.program.start()
        self.connection = http.client.HTTPConnection(self.http_address, timeout=PATIENCE_S)
        self.people = http.client.HTTPConnection(self.web_address, timeout=PATIENCE_S)

    def enforcer(self, node: str, session: str = "session-1", **hello: Any) -> Enforcer:
        self._enforcers.append(Enforcer(self.grpc_address, node, session, **hello))
        return self._enforcers[-1]

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Status and decoded answer; every answer must carry its length."""
        headers = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"} if body is not None else {}
        connection = self.connection if self.program.port_of(path) == self.http_address else self.people
        if connection.sock is not None and wait_for_read(connection.sock, 0):
            connection.close()  # by the extender, as an idle one: it is opened again
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        assert response.headers["Content-Length"] == str(len(content))
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(content) if is_json else content.decode()

    def post(self, verb: str, body: bytes) -> Any:
        status, answer = self.ask("POST", f"/{verb}", body)
        assert status == 200, answer
        return answer

    def get(self, path: str) -> Any:
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def scores(self, body: bytes) -> dict[str, int]:
        return {row["Host"]: row["Score"] for row in self.post("prioritize", body)}

    def end(self) -> None:
        """As the kubelet asks it to."""
        self._close()
        self.program.end()

    def kill(self) -> None:
        """Without a word."""
        self._close()
        self.program.kill()

    def stop(self) -> None:
        """At once, without the grace that SIGTERM gives to callers."""
        self._close()
        self.program.end(signal.SIGQUIT)

    def _close(self) -> None:
        for enforcer in self._enforcers:
            enforcer.close()
        self._enforcers.clear()
        self.connection.close()
        self.people.close()


@contextmanager
def running(directory: Path, *options: str, **program: Any) -> Iterator[Extender]:
    """program: as ExtenderProcess takes it."""
    extender = Extender(directory, *options, **program)
    try:
        yield extender
    finally:
        extender.stop()
