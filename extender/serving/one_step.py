"""A call of kube-scheduler's that is read, answered and written in one step of the event loop.

kube-scheduler asks hundreds of times a second, and a task for each request with the loop's rounds and two writes takes
ten times as long as h11 needs for all of it. So the bytes of what may be such a call are given to an h11 of its own;
whatever turns out otherwise goes to the connection's, with every byte.
"""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

import h11

from extender.scheduler.calls import CallAnswer

HEAD_BYTES = 4 << 10
"""Of the request line with its headers; kube-scheduler's are some 170."""

BODY_BYTES = 96 << 10
"""5,000 names take 70 KB."""

_OTHERWISE = {b"connection", b"expect", b"transfer-encoding", b"upgrade"}
"""Headers by which more is asked for than an answer."""


class OneStep:
    """One request. data: all that was read of it. path: without its slash. whole: whether its end was read."""

    def __init__(self) -> None:
        self.data, self.path, self.whole = b"", "", False
        self._conn = h11.Connection(h11.SERVER, HEAD_BYTES)
        self._body: list[bytes] = []

    @property
    def body(self) -> bytes:
        return b"".join(self._body)

    def read(self, data: bytes) -> bool:
        """Whether it is still a call that may be answered so; after False nothing else is to be asked."""
        self.data += data
        try:
            self._conn.receive_data(data)
            return self._events()
        except h11.RemoteProtocolError:
            return False

    def _events(self) -> bool:
        while (event := self._conn.next_event()) is not h11.NEED_DATA:
            match event:
                case h11.Request():
                    if not _plain(event):
                        return False
                    self.path = event.target[1:].decode()
                case h11.Data():
                    self._body.append(bytes(event.data))
                case h11.EndOfMessage():
                    self.whole = True
                    return not self._conn.trailing_data[0]
                case _:
                    return False
        return True


def _plain(request: h11.Request) -> bool:
    headers = dict(request.headers)
    length = int(headers.get(b"content-length", BODY_BYTES + 1))
    as_asked = (request.method, request.http_version) == (b"POST", b"1.1")
    return as_asked and length <= BODY_BYTES and _OTHERWISE.isdisjoint(headers)


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
