"""Calls that are answered in one step: which they are, and that however a call comes its answer is the same."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse

import pytest

from extender.scheduler.calls import CallAnswer
from extender.serving.connection import MOMENT_S
from extender.serving.one_step import HEAD_BYTES, REQUEST_BYTES, OneStep, written
from lab.standins.patience import PATIENCE_S
from tests.extender.running import Extender, recorded

HOST, TYPE = b"Host: extender:8080\r\n", b"Content-Type: application/json\r\n"
GO = HOST + b"User-Agent: Go-http-client/1.1\r\nContent-Length: %d\r\n" + TYPE + b"Accept-Encoding: gzip\r\n"
BODY = recorded("complex-pod-nodecache-true.filter")
NAMES = json.loads(BODY)["NodeNames"]


def request(body: bytes = BODY, *, headers: bytes = b"", verb: bytes = b"filter") -> bytes:
    return b"POST /%b HTTP/1.1\r\n" % verb + GO % len(body) + headers + b"\r\n" + body


@pytest.mark.parametrize("size", [1, 30, 4096, len(request())])
def test_a_call_as_kube_scheduler_writes_it_is_read_in_any_pieces(size: int) -> None:
    call, asked = OneStep(), request()
    for begin in range(0, len(asked), size):
        assert not call.whole
        assert call.read(asked[begin : begin + size])
    assert (call.whole, call.path, call.body, call.data) == (True, "filter", BODY, asked)


@pytest.mark.parametrize(
    "data",
    [
        request(b"{}").replace(b"POST", b"GET"),
        request(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        request(b"{}").replace(HOST, b""),
        request(b"{}", headers=b"Transfer-Encoding: chunked\r\n"),
        request(b"{}", headers=b"Connection: close\r\n"),
        request(b"{}", headers=b"expect: 100-continue\r\n"),
        request(b"{}", headers=b"Upgrade: h2c\r\n"),
        request(b"{}", headers=b"Name\x00: a\r\n"),
        request(b"{}", headers=b"Name: \x00\r\n"),
        request(b"{}", headers=b"A: %b\r\n" % (b"a" * HEAD_BYTES))[: HEAD_BYTES + 1],
        request(b"{}").replace(b"Length: 2", b"Length: -2"),
        request(b"{}", headers=b"Content-Length: 2\r\n"),
        request(b"{}", headers=b"Content-Length: 3\r\n"),
        request(b" " * REQUEST_BYTES),
        request(b"{}") + b"P",
    ],
)
def test_whatever_is_otherwise_is_not_one(data: bytes) -> None:
    assert not OneStep().read(data)


def test_an_answer_is_written_with_its_length() -> None:
    head, _, body = written(CallAnswer(400, b"{}")).partition(b"\r\n\r\n")
    assert body == b"{}"
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-length: 2" in head.lower()


@pytest.fixture
def caller(extender: Extender) -> Iterator[socket.socket]:
    host, _, port = extender.http_address.rpartition(":")
    with closing(socket.create_connection((host, int(port)), timeout=PATIENCE_S)) as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connected


def answered(caller: socket.socket) -> int:
    """The status; all nodes are in the answer where it is 200."""
    response = HTTPResponse(caller)
    response.begin()
    content = json.loads(response.read())
    assert response.status != 200 or content["NodeNames"] == NAMES
    return response.status


@pytest.mark.parametrize("pause_s", [0.0, 3 * MOMENT_S])
@pytest.mark.parametrize("headers", [b"", b"Connection: keep-alive\r\n"], ids=["one step", "all others"])
def test_it_may_come_in_pieces(caller: socket.socket, pause_s: float, headers: bytes) -> None:
    asked = request(headers=headers)
    for size in (30, 300, len(asked) - 1):
        for piece in (asked[:size], asked[size:]):
            caller.sendall(piece)
            time.sleep(pause_s)
        assert answered(caller) == 200


def test_one_connection_serves_both_ways_in_any_order(caller: socket.socket) -> None:
    bodies = request(), request(headers=b"Expect: nothing\r\n"), request(b"no JSON"), request()
    for asked, status in zip(bodies, (200, 200, 400, 200), strict=True):
        caller.sendall(asked)
        assert answered(caller) == status


def test_a_call_that_comes_with_the_next_one_is_answered_before_it(caller: socket.socket) -> None:
    caller.sendall(request() + request(b"no JSON") + request())
    with caller.makefile("rb") as stream:
        statuses = []
        for _ in range(3):
            statuses.append(stream.readline().split()[1])
            while (header := stream.readline()) != b"\r\n":
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split()[1])
            stream.read(length)
    assert statuses == [b"200", b"400", b"200"]
