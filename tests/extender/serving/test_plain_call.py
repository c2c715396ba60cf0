"""Calls that are answered before h11: which they are, and that however a call comes its answer is the same."""

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
from extender.serving.plain_call import BODY_BYTES, HEAD_BYTES, PlainHead, plain_head, written
from standins.patience import PATIENCE_S
from tests.extender.running import Extender, recorded

HOST, TYPE = b"Host: extender:8080\r\n", b"Content-Type: application/json\r\n"
GO = HOST + b"User-Agent: Go-http-client/1.1\r\nContent-Length: %d\r\n" + TYPE + b"Accept-Encoding: gzip\r\n"
BODY = recorded("complex-pod-nodecache-true.filter")
NAMES = json.loads(BODY)["NodeNames"]


def request(body: bytes = BODY, *, headers: bytes = b"", verb: bytes = b"filter") -> bytes:
    return b"POST /%b HTTP/1.1\r\n" % verb + GO % len(body) + headers + b"\r\n" + body


def test_a_call_as_kube_scheduler_writes_it_is_plain() -> None:
    asked = request(b"{}")
    assert plain_head(asked) == PlainHead("filter", len(asked) - 2, len(asked))
    assert plain_head(asked[:-1]) == plain_head(asked)


@pytest.mark.parametrize(
    "data",
    [
        request(b"{}")[:40],
        request(b"{}").replace(b"POST", b"GET"),
        request(b"{}").replace(b"/filter", b"/filter?a=b"),
        request(b"{}").replace(b"/filter", b"/api/v1"),
        request(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        request(b"{}").replace(HOST, b""),
        request(b"{}").replace(b"\r\n", b"\n"),
        request(b"{}", headers=b"Content-Length: 2\r\n"),
        request(b"{}", headers=b"content-length:2\r\n"),
        request(b"{}", headers=b"Transfer-Encoding: chunked\r\n"),
        request(b"{}", headers=b"Connection: close\r\n"),
        request(b"{}", headers=b"expect: 100-continue\r\n"),
        request(b"{}", headers=b"Upgrade: h2c\r\n"),
        request(b"{}", headers=b" folded\r\n"),
        request(b"{}", headers=b"Name\x00: a\r\n"),
        request(b"{}", headers=b"Name: \x00\r\n"),
        request(b"{}", headers=b"A: %b\r\n" % (b"a" * HEAD_BYTES)),
        request(b"{}").replace(b"Length: 2", b"Length: -2"),
        request(b"{}").replace(b"Length: 2", b"Length: 2, 2"),
        request(b" " * (BODY_BYTES + 1)),
    ],
)
def test_whatever_is_otherwise_is_left_to_h11(data: bytes) -> None:
    assert plain_head(data) is None


def test_an_answer_is_written_with_its_length() -> None:
    head, _, body = written(CallAnswer(400, b"{}")).partition(b"\r\n\r\n")
    assert body == b"{}"
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-length: 2\r\n" in head


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
@pytest.mark.parametrize("headers", [b"", b"X-Long: %b\r\n" % (b"a" * HEAD_BYTES)], ids=["plain", "h11"])
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
