"""A call of kube-scheduler's that is read, answered and written in one step of the event loop.

kube-scheduler asks hundreds of times a second, and h11 in Python, a task for each request and the loop's rounds take
half a millisecond of CPU for each pod. So the bytes of what may be such a call are first read by httptools' parser,
which is in C; whatever turns out otherwise goes to the connection's h11, with every byte.
"""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

import httptools

from extender.scheduler.calls import CallAnswer

HEAD_BYTES = 4 << 10
"""Of the request line with its headers; kube-scheduler's are some 170."""

REQUEST_BYTES = 100 << 10
"""Of all of it; 5,000 names take 70 KB."""

_NEEDED = {b"host", b"content-length"}
_OTHERWISE = {b"connection", b"expect", b"transfer-encoding", b"upgrade"}
"""Headers by which more is asked for than an answer."""


class OneStep:
    """One request; httptools calls its methods `on_...`. data: all that was read of it. path: as asked for, without
    its slash. whole: whether its end was read.
    """

    def __init__(self) -> None:
        self.data, self._url, self.whole = b"", b"", False
        self._begun, self._in_body, self._plain = 0, False, False
        self._headers: set[bytes] = set()
        self._body: list[bytes] = []
        self._parser = httptools.HttpRequestParser(self)

    @property
    def path(self) -> str:
        return self._url[1:].decode("latin-1")

    @property
    def body(self) -> bytes:
        return b"".join(self._body)

    def read(self, data: bytes) -> bool:
        """Whether it is still a call that may be answered so; after False, or its end, nothing else is to be read."""
        still = self._fed(data)
        if self.whole or not still:
            del self._parser  # which holds this one in turn: garbage of each call, that only a collection would free
        return still

    def _fed(self, data: bytes) -> bool:
        self.data += data
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return False
        most = REQUEST_BYTES if self._in_body else HEAD_BYTES
        return len(self.data) <= most and self._begun == 1 and self._plain >= self._in_body

    def on_message_begin(self) -> None:
        self._begun += 1

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, _value: bytes) -> None:
        self._headers.add(name.lower())

    def on_headers_complete(self) -> None:
        self._in_body = True
        asked = self._parser.get_method(), self._parser.get_http_version()
        self._plain = asked == (b"POST", "1.1") and self._headers >= _NEEDED and self._headers.isdisjoint(_OTHERWISE)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self.whole = True


def headers_of(answer: CallAnswer) -> list[tuple[bytes, bytes]]:
    length = str(len(answer.body)).encode()
    return [(b"content-type", b"application/json"), (b"content-length", length), date()]


def date() -> tuple[bytes, bytes]:
    return b"date", formatdate(usegmt=True).encode()


def written(answer: CallAnswer) -> bytes:
    """The whole answer, for one write."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers_of(answer))
    status = HTTPStatus(answer.status)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, status.phrase.encode(), lines, answer.body)
