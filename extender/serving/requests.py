"""One connection's requests, read one after the other within limits, and the head of an answer.

The thread of the connection reads, so nothing is lost by waiting; httptools' parser is in C.
"""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from threading import Lock

import httptools

from extender.serving import limits

READ_BYTES = 64 << 10
"""Of one read."""

AT_LEAST_S = 0.001
"""A socket's timeout of 0 would be none."""

Headers = list[tuple[bytes, bytes]]


class Over(Exception):
    """A request that is not answered; its connection ends. limit: which it is over; empty where it is none at all."""

    def __init__(self, limit: str, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.limit, self.status, self.text = limit, status, text

    @property
    def written(self) -> bytes:
        return refusal(self.status, self.text, last=True)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """target: as asked for. headers: names in lower case. last: whether its peer wants the connection to end after it.
    modern: whether by HTTP/1.1.
    """

    method: str
    target: bytes
    headers: Headers
    body: bytes
    last: bool
    modern: bool


class HeldBytes:
    """Of all bodies of one port that are being read or answered. Thread-safe."""

    def __init__(self) -> None:
        self._size, self._lock = 0, Lock()

    def add(self, size: int) -> bool:
        """Whether they are within the bound. Negative for bytes that are held no more."""
        with self._lock:
            self._size += size
            return self._size <= limits.HELD_BYTES


class Requests:
    """httptools calls its methods `on_...`. most_bytes: of a body."""

    def __init__(self, connected: socket.socket, most_bytes: int, held: HeldBytes) -> None:
        self._socket, self._most, self._held = connected, most_bytes, held
        self._parser = httptools.HttpRequestParser(self)
        self._read: deque[HttpRequest] = deque()
        self._over: Over | None = None
        self._own = self._withheld = 0
        self._begin()

    def next(self) -> HttpRequest | None:
        """None where there is none any more. Over where the next one is not to be answered; OSError."""
        if self._read:
            return self._read.popleft()
        self.release()
        self._socket.settimeout(limits.KEEPALIVE_S)
        try:
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            return None
        begun, limit = time.monotonic(), "header_s"
        while data:
            self._feed(data)
            if self._read:
                return self._read.popleft()
            if self._in_body and limit == "header_s":
                begun, limit = time.monotonic(), "body_s"
            data = self._more(begun, limit)
        return None

    def release(self) -> None:
        """What was read is held no more."""
        self._held.add(-self._own)
        self._own = 0

    def _more(self, begun: float, limit: str) -> bytes:
        """What comes within the limit, which began then."""
        most_s = limits.HEADER_S if limit == "header_s" else limits.BODY_S
        self._socket.settimeout(max(begun + most_s - time.monotonic(), AT_LEAST_S))
        try:
            return self._socket.recv(READ_BYTES)
        except TimeoutError as late:
            what = "headers" if limit == "header_s" else "body"
            raise Over(limit, HTTPStatus.REQUEST_TIMEOUT, f"the {what} took over {most_s:g} s") from late

    def _feed(self, data: bytes) -> None:
        before = self._known
        try:
            while (offset := self._parsed(data)) is not None:
                data = self._declined() + data[offset:]
        except httptools.HttpParserError as bad:
            raise self._over or Over("", HTTPStatus.BAD_REQUEST, f"this is no HTTP request: {bad}") from bad
        if self._over is not None:
            raise self._over
        # A header is told of once it is whole, and until then kept by the parser, whatever it comes to.
        self._withheld = self._withheld + len(data) if self._known == before else 0
        if max(self._head, self._withheld) > limits.HEADER_BYTES:
            text = f"the headers are over the bound of {limits.HEADER_BYTES} bytes"
            raise Over("header_bytes", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)

    def _parsed(self, data: bytes) -> int | None:
        """Where the head of a request ends that offers another protocol; None: there is none."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            offset: int = offer.args[0]
            return offset
        return None

    def _declined(self) -> bytes:
        """The head of that request without the offer, which a server may pass over (RFC 9110, section 7.8), to be read
        again: the parser takes what follows an offer for the other protocol, a body too.
        """
        offering, self._parser = self._read.pop(), httptools.HttpRequestParser(self)
        if offering.method == "CONNECT":
            raise Over("", HTTPStatus.BAD_REQUEST, "no other protocol than HTTP/1.1 is spoken here")
        version = b"1.1" if offering.modern else b"1.0"
        lines = b"".join(b"%b: %b\r\n" % header for header in offering.headers if header[0] != b"upgrade")
        return b"%b %b HTTP/%b\r\n%b\r\n" % (offering.method.encode(), offering.target, version, lines)

    @property
    def _known(self) -> tuple[int, int, int]:
        """Another one whenever the parser has told of anything."""
        return len(self._read), self._head, self._size

    def _begin(self) -> None:
        self._url, self._body = b"", bytearray()
        self._headers: Headers = []
        self._head = self._size = 0
        self._in_body = False

    def on_message_begin(self) -> None:
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))
        self._head += len(name) + len(value)

    def on_headers_complete(self) -> None:
        self._in_body = True
        announced = next((value for name, value in self._headers if name == b"content-length"), b"0")
        if int(announced) > self._most:
            self._over = self._too_large()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._own += len(body)
        if self._size > self._most:
            self._over = self._too_large()
        if not self._held.add(len(body)):
            text = f"the bodies under way are over the bound of {limits.HELD_BYTES} bytes"
            self._over = Over("held_bytes", HTTPStatus.SERVICE_UNAVAILABLE, text)
        if self._over is None:
            self._body += body

    def on_message_complete(self) -> None:
        method, modern = self._parser.get_method().decode("latin-1"), self._parser.get_http_version() == "1.1"
        last = not (modern and self._parser.should_keep_alive())
        self._read.append(HttpRequest(method, self._url, self._headers, bytes(self._body), last, modern))

    def _too_large(self) -> Over:
        text = f"the body is over the bound of {self._most} bytes"
        return Over("body_bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


def head(status: int, headers: Iterable[tuple[bytes, bytes]], *, last: bool) -> bytes:
    """last: whether the connection ends after the answer."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    phrase = HTTPStatus(status).phrase.encode()
    date = formatdate(usegmt=True).encode()
    return b"HTTP/1.1 %d %b\r\n%bdate: %b\r\n%b\r\n" % (
        status, phrase, lines, date, b"connection: close\r\n" if last else b"",
    )  # fmt: skip


def of_json(status: int, body: bytes, *, last: bool) -> bytes:
    """The whole answer, for one write."""
    length = str(len(body)).encode()
    return head(status, [(b"content-type", b"application/json"), (b"content-length", length)], last=last) + body


def refusal(status: int, why: str, *, last: bool) -> bytes:
    return of_json(status, json.dumps({"error": why}).encode(), last=last)
