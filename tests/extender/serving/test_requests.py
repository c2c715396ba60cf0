"""Requests as they may come: in any pieces, one behind the other, and what is none."""

from __future__ import annotations

import json
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.serving import limits
from extender.serving.requests import READ_BYTES, HeldBytes, HttpRequest, Over, Requests, of_json
from lab.standins.patience import PATIENCE_S
from tests.extender.running import Extender, recorded

HOST, TYPE = b"Host: extender:8080\r\n", b"Content-Type: application/json\r\n"
GO = HOST + b"User-Agent: Go-http-client/1.1\r\nContent-Length: %d\r\n" + TYPE + b"Accept-Encoding: gzip\r\n"
OFFER = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"
BODY = recorded("complex-pod-nodecache-true.filter")
NAMES = json.loads(BODY)["NodeNames"]


def request(body: bytes = BODY, *, headers: bytes = b"", verb: bytes = b"filter") -> bytes:
    return b"POST /%b HTTP/1.1\r\n" % verb + GO % len(body) + headers + b"\r\n" + body


def read(*pieces: bytes, most: int = limits.BODY_BYTES) -> Iterator[HttpRequest]:
    """The requests of a peer that writes these pieces, one after the other, and ends the connection."""
    near, far = socket.socketpair()
    with near, far:
        requests = Requests(near, most, HeldBytes())
        for piece in pieces:
            far.sendall(piece)
        far.shutdown(socket.SHUT_WR)
        while (each := requests.next()) is not None:
            yield each


@given(st.lists(st.integers(0, len(request())), max_size=8))
def test_a_call_as_kube_scheduler_writes_it_is_read_in_any_pieces(cuts: list[int]) -> None:
    asked, edges = request(), sorted({0, *cuts, len(request())})
    (call,) = read(*(asked[begin:end] for begin, end in pairwise(edges)))
    assert (call.method, call.target, call.body, call.last) == ("POST", b"/filter", BODY, False)


def test_a_body_in_chunks_is_one() -> None:
    chunks = b"2\r\n{}\r\n3\r\n[1]\r\n0\r\n\r\n"
    (call,) = read(request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + chunks)
    assert call.body == b"{}[1]"


def test_a_body_in_tiny_chunks_takes_no_more_memory_than_another() -> None:
    """Each chunk is 2 bytes; as an object of its own it would be 60."""
    begin, chunks = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"), b"2\r\n{}\r\n" * 20_000
    tracemalloc.start()
    try:
        (call,) = read(begin + chunks + b"0\r\n\r\n")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert call.body == b"{}" * 20_000
    assert most < 20 * len(call.body)


@given(st.lists(st.integers(0, 3 * len(request(headers=OFFER))), max_size=8))
def test_who_offers_another_protocol_is_answered_by_this_one(cuts: list[int]) -> None:
    """As Java's client does, of HTTP/2. What the body says is no request."""
    smuggled = request(b"{}", verb=b"preempt")
    sent = request(smuggled, headers=OFFER) + request(BODY, headers=OFFER, verb=b"prioritize") + request(b"{}")
    edges = sorted({0, *cuts, len(sent)})
    calls = [*read(*(sent[begin:end] for begin, end in pairwise(edges)))]
    assert [(call.target, call.body) for call in calls] == [
        (b"/filter", smuggled), (b"/prioritize", BODY), (b"/filter", b"{}"),
    ]  # fmt: skip
    assert not any(call.last for call in calls)


def test_such_a_body_may_come_in_chunks() -> None:
    chunks = b"2\r\n{}\r\n0\r\n\r\n"
    asked = request(b"", headers=OFFER).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert [call.body for call in read(asked + chunks + request(b"[]"))] == [b"{}", b"[]"]


def test_a_crowd_of_such_offers_is_read() -> None:
    one = b"GET / HTTP/1.1\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n"
    assert len([*read(one * (READ_BYTES // len(one)))]) == READ_BYTES // len(one)


@pytest.mark.parametrize("headers", [b"Connection: close\r\n", b""], ids=["close", "1.0"])
def test_who_wants_the_connection_to_end_after_the_answer_is_seen(headers: bytes) -> None:
    asked = request(b"{}", headers=headers)
    (call,) = read(asked if headers else asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert call.last


@pytest.mark.parametrize(
    ("data", "limit", "status"),
    [
        (b"CONNECT other:443 HTTP/1.1\r\n" + HOST + b"\r\n", "", 400),
        (request(b" " * 1001, headers=OFFER), "body_bytes", 413),
        (request(b"{}", headers=b"Name\x00: a\r\n"), "", 400),
        (request(b"{}").replace(b"Length: 2", b"Length: -2"), "", 400),
        (request(b"{}", headers=b"Content-Length: 3\r\n"), "", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "", 400),
        (request(b"{}", headers=b"A: %b\r\n" % (b"a" * limits.HEADER_BYTES)), "header_bytes", 431),
        (request(b" " * 1001), "body_bytes", 413),
        (request(b"")[:-2].replace(b"Content-Length: 0", b"Content-Length: 99999999999") + b"\r\n", "body_bytes", 413),
        (
            request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"%x\r\n" % 1001 + b" " * 1001,
            "body_bytes",
            413,
        ),
    ],
)
def test_what_is_none_or_over_a_limit_ends_the_connection(data: bytes, limit: str, status: int) -> None:
    with pytest.raises(Over) as caught:
        [*read(data, most=1000)]
    assert (caught.value.limit, caught.value.status) == (limit, status)
    assert b"\r\nconnection: close\r\n" in caught.value.written


@pytest.mark.parametrize(
    "begin", [b"A: ", b"A", b"Transfer-Encoding: chunked\r\n\r\n1;"], ids=["value", "name", "chunk"]
)
def test_a_header_that_never_ends_is_not_kept(begin: bytes) -> None:
    """The parser tells of it once it is whole: 5 s of one were as much memory as the network brings."""
    asked = (b"POST /filter HTTP/1.1\r\n" + begin, *[b"a" * 50_000] * 2)
    with pytest.raises(Over) as caught:
        [*read(*asked)]
    assert (caught.value.limit, caught.value.status) == ("header_bytes", 431)


def test_bodies_under_way_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELD_BYTES", 3000)
    held, pairs = HeldBytes(), [socket.socketpair() for _ in range(4)]
    requests = [Requests(near, limits.BODY_BYTES, held) for near, _ in pairs]
    for _, far in pairs:
        far.sendall(request(b" " * 1000))
    for each in requests[:3]:
        assert each.next()
    with pytest.raises(Over, match="the bodies under way are over the bound of 3000 bytes"):
        requests[3].next()
    for each in requests:
        each.release()
    pairs[0][1].sendall(request(b" " * 3000))
    assert requests[0].next(), "what was answered is held no more"
    for pair in pairs:
        for end in pair:
            end.close()


def test_a_body_that_is_under_way_has_what_is_left_of_its_time_to_come() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(request(bytes(READ_BYTES)))
        call = Requests(near, limits.BODY_BYTES, HeldBytes()).next()
        assert call is not None
        assert len(call.body) == READ_BYTES
        waited_s = near.gettimeout()
    assert waited_s is not None
    assert limits.BODY_S / 2 < waited_s <= limits.BODY_S


def test_an_answer_is_written_with_its_length() -> None:
    head, _, body = of_json(400, b"{}", last=False).partition(b"\r\n\r\n")
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


def test_one_connection_serves_good_and_bad_calls_in_any_order(caller: socket.socket) -> None:
    bodies = request(), request(headers=b"Expect: nothing\r\n"), request(b"no JSON"), request(verb=b"x"), request()
    for asked, status in zip(bodies, (200, 200, 400, 404, 200), strict=True):
        caller.sendall(asked)
        assert answered(caller) == status
