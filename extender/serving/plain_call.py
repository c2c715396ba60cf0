"""A call of kube-scheduler's as its HTTP client writes it: found in a connection's bytes, and answered in bytes.

That client asks hundreds of times a second with the same few headers. Such a request is read here in microseconds, and
its answer sent at once, where h11 and a task for each request take half a millisecond of CPU. Whatever looks otherwise
in any way is h11's to judge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

from extender.scheduler.calls import CallAnswer

HEAD_BYTES = 4 << 10
"""Of a plain request line with its headers; kube-scheduler's are some 170."""

BODY_BYTES = 96 << 10
"""Of a plain request: 5,000 names take 70 KB."""

_HEAD = re.compile(rb"POST /([a-z]+) HTTP/1\.1\r\n((?:[-\w]+: [ -~]*\r\n)+)\r\n", re.ASCII)
_LENGTH = re.compile(rb"^content-length: (\d{1,6})\r$", re.MULTILINE)
_NOT_PLAIN = re.compile(rb"^(?:connection|expect|transfer-encoding|upgrade):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlainHead:
    """path: without its slash. begin, end: of the body."""

    path: str
    begin: int
    end: int


def plain_head(data: bytes) -> PlainHead | None:
    """Of the request that these bytes begin with, whose body may not be there yet; None where h11 is to read it."""
    found = _HEAD.match(data, 0, HEAD_BYTES)
    if found is None:
        return None
    headers = found[2].lower()
    lengths = _LENGTH.findall(headers)
    if len(lengths) != 1 or headers.count(b"content-length") != 1 or _NOT_PLAIN.search(headers):
        return None
    if not (headers.startswith(b"host: ") or b"\nhost: " in headers) or int(lengths[0]) > BODY_BYTES:
        return None
    return PlainHead(found[1].decode(), found.end(), found.end() + int(lengths[0]))


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
