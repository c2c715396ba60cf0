"""A hostile pod reaches the extender's HTTP ports: kube-scheduler is answered all the same, and what is held is bounded."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from extender.scheduler import wire
from extender.serving import limits
from lab.standins.patience import PATIENCE_S, until
from lab.standins.stranger import HALF_A_REQUEST
from tests import forked
from tests.attack.hostile import HALF_A_BODY, HostilePod, allow_descriptors, cut_off, memory, readable
from tests.extender.running import Extender, recorded, running
from tests.metrics import value

NAMES = ["n1", "n2", "n3"]


def scheduled(extender: Extender) -> list[str]:
    """The nodes that kube-scheduler gets, on the connection that it keeps."""
    return list(extender.post("filter", recorded("basic-nodecache-true.filter"))["NodeNames"])


def over(extender: Extender, limit: str) -> float:
    text = extender.get("/metrics")
    name = "numakin_extender_over_limit_total"
    return value(text, name, limit=limit) if f'{name}{{limit="{limit}"}}' in text else 0.0


@pytest.fixture
def pod(extender: Extender):
    with HostilePod(extender.http_address) as first:
        yield first


@pytest.fixture(params=["http", "web", "health"])
def address(request: pytest.FixtureRequest, extender: Extender) -> str:
    """Each of its ports."""
    return getattr(extender.program, request.param)


def probed(extender: Extender) -> int:
    """What the kubelet gets, on a connection of its own each time."""
    with closing(http.client.HTTPConnection(extender.program.health, timeout=PATIENCE_S)) as connection:
        connection.request("GET", "/healthz")
        return connection.getresponse().status


@pytest.mark.parametrize(("half", "limit"), [(HALF_A_REQUEST, "header_s"), (HALF_A_BODY, "body_s")])
def test_half_sent_requests_hold_nobody_up_and_are_cut_off(extender, address, half, limit):
    with HostilePod(address) as pod:
        pod.hold(limits.CONNECTIONS_PER_PEER // 2, half)
        assert scheduled(extender) == NAMES
        assert probed(extender) == 200
        until(lambda: over(extender, limit) > 0, "one was cut off")
        for connection in pod.sockets:
            cut_off(connection)
        assert over(extender, limit) == len(pod.sockets)
    assert scheduled(extender) == NAMES


def test_who_says_nothing_is_cut_off_and_was_never_more_than_a_socket(extender, address):
    threads = thread_count(extender)
    with HostilePod(address) as pod:
        pod.hold(limits.CONNECTIONS_PER_PEER, b"")
        assert thread_count(extender) < threads + len(pod.sockets) // 2
        for connection in pod.sockets:
            cut_off(connection)
        assert over(extender, "handshake_s") == len(pod.sockets)


def thread_count(extender: Extender) -> int:
    """Of its process, with those of this test's own calls."""
    probed(extender)
    return len([*Path(f"/proc/{extender.program.pid}/task").iterdir()])


FLOODS = [(b"", "waiting", limits.WAITING), (HALF_A_REQUEST, "connections", limits.CONNECTIONS)]
"""What each connection says first, and the bound that it comes under."""


class TestCrowd:
    """More connections than there may be. None is over for its time: on a slow machine the first would be before the last
    is taken, and they would never be too many.
    """

    @pytest.fixture
    def extender(self, tmp_path: Path) -> Iterator[Extender]:
        allow_descriptors()
        for_ever = {f"extender.serving.limits.{name}": 1e6 for name in ("HANDSHAKE_S", "HEADER_S")}
        with running(tmp_path, begin=partial(forked.extender, constants=for_ever)) as first:
            yield first

    def test_one_address_has_so_many_connections_and_no_more(self, extender, address):
        with HostilePod(address) as pod:
            pod.hold(limits.CONNECTIONS_PER_PEER, HALF_A_REQUEST)
            assert cut_off(pod.connect()) == b""
            assert scheduled(extender) == NAMES
            assert over(extender, "connections_per_peer") == 1
            assert not any(map(readable, pod.sockets[:-1]))

    @pytest.mark.parametrize(("first", "limit", "most"), FLOODS, ids=["silent", "half a request"])
    def test_a_flood_from_many_addresses_takes_no_place_from_who_calls(self, extender, address, first, limit, most):
        """Beside the connection that kube-scheduler keeps, and before it opens another."""
        assert scheduled(extender) == NAMES
        each_has = 1 + (most + 20) // 41
        with ExitStack() as stack:
            for number in range(1, 42):
                stack.enter_context(HostilePod(address, f"127.1.0.{number}")).hold(each_has, first)
            assert scheduled(extender) == NAMES
            until(lambda: over(extender, limit) > 0, "the port takes no more")
            assert scheduled(extender) == NAMES
            extender.connection.close()
            assert scheduled(extender) == NAMES
            assert probed(extender) == 200
            assert extender.get("/api/v1/nodes")["nodes"] == []

    def test_who_has_few_connections_is_not_cut_off_for_who_has_many(self, extender, address):
        with ExitStack() as stack:
            first = stack.enter_context(HostilePod(address, "127.5.0.1")).connect(HALF_A_REQUEST)
            for number in range(1, 42):
                stack.enter_context(HostilePod(address, f"127.5.1.{number}")).hold(4, HALF_A_REQUEST)
            until(lambda: over(extender, "connections") > 0, "the port takes no more")
            first.sendall(b"ngth: 0\r\nConnection: close\r\n\r\n")
            assert cut_off(first).startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize("port", ["web", "health"])
def test_callers_that_read_no_answer_hold_nobody_up(extender, port):
    """Each asks again and again on one connection, and reads nothing."""
    line = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with HostilePod(getattr(extender.program, port)) as pod:
        pod.hold(limits.CONNECTIONS_PER_PEER // 2, line * 200)
        assert scheduled(extender) == NAMES
        assert probed(extender) == 200
        assert extender.get("/api/v1/nodes")["nodes"] == []


def test_a_peer_that_ends_its_side_after_the_request_is_answered(extender, address):
    """As `nc -N` does."""
    with HostilePod(address) as pod:
        connection = pod.connect(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{")
        connection.shutdown(socket.SHUT_WR)
        assert cut_off(connection).startswith(b"HTTP/1.1 4")


def test_a_body_over_the_bound_is_refused_by_name(extender, pod):
    announced = f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {limits.BODY_BYTES + 1}\r\n\r\n".encode()
    assert b" 413 " in cut_off(pod.connect(announced)).splitlines()[0]
    assert over(extender, "body_bytes") == 1


def test_more_headers_than_the_bound_are_refused(extender, pod):
    status, _ = pod.request("POST", "/filter", x=64 * limits.HEADER_BYTES * "x")
    assert status in (0, 431)
    assert over(extender, "header_bytes") == 1
    assert scheduled(extender) == NAMES


def row(item: bytes, times: int) -> bytes:
    """Of one item, with commas: a list of as many would take ten times the memory, and seconds."""
    return (item + b",") * (times - 1) + item


BODIES = {
    "tiny nodes": lambda: (
        b'{"Pod":{"metadata":{"name":"a"},"spec":{}},"Nodes":{"items":[%s]}}'
        % row(b'{"metadata":{"name":"n"}}', 2_200_000)
    ),
    "numbers": lambda: b'{"Pod":{"metadata":{"name":"a"},"spec":{}},"Nodes":{"items":[%s]}}' % row(b"1", 30_000_000),
    "keys": lambda: b"{%s}" % row(b'"a":1', 10_000_000),
    "names": lambda: b'{"Pod":{"metadata":{"name":"a"},"spec":{}},"NodeNames":[%s]}' % row(b'"n"', 4_900_000),
    "annotations": lambda: (
        b'{"Pod":{"metadata":{"name":"a","annotations":{%s}},"spec":{}},"NodeNames":["n"]}'
        % b",".join(b'"%d":""' % number for number in range(4_900_000))
    ),
}
"""Made when they are needed: tens of megabytes each."""


@pytest.mark.parametrize("made", BODIES.values(), ids=BODIES)
def test_a_huge_body_takes_little_memory(extender, pod, made):
    body, before = made(), memory(extender.program.pid)
    assert len(body) < limits.BODY_BYTES
    status, answer = pod.request("POST", "/filter", body)
    assert status == 400
    assert "over the bound of" in json.loads(answer)["error"]
    assert memory(extender.program.pid) - before < 8 * limits.BODY_BYTES
    assert scheduled(extender) == NAMES


def test_more_nodes_than_a_cluster_has_are_refused(extender, pod):
    names = [f"n{number}" for number in range(wire.NODES + 1)]
    metadata = {"name": "a", "annotations": {"group.numakin.io": "shop"}}
    body = json.dumps({"Pod": {"metadata": metadata, "spec": {}}, "NodeNames": names}).encode()
    assert pod.request("POST", "/prioritize", body)[0] == 400
