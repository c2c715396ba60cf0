"""Answers of a WSGI application: to people, or to probes and Prometheus."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools
from werkzeug.test import run_wsgi_app

from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.http_service import Answers
from extender.serving.requests import HttpRequest, head, refusal

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]

NO_BODY = frozenset({204, 304})


class InTurn:
    """A WSGI application of which READERS answers are worked out at one time: however many people ask, kube-scheduler's
    thread meets no more of them than that.
    """

    def __init__(self, app: WsgiApp) -> None:
        self._app, self._turns = app, BoundedSemaphore(limits.READERS)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._turns:
            parts = self._app(environ, start_response)
            try:
                return [*parts]
            finally:
                _close(parts)


def wsgi_answers(app: WsgiApp) -> Callable[[], Answers]:
    """Those of every connection."""
    return lambda: partial(_answer, app)


def _answer(app: WsgiApp, connection: Connection, request: HttpRequest) -> None:
    connection.socket.settimeout(limits.ANSWER_S)
    try:
        environ = environ_of(connection, request)
    except httptools.HttpParserInvalidURLError:
        connection.socket.sendall(refusal(400, "what is asked for is no path", last=request.last))
        return
    answered, text, headers = run_wsgi_app(app, environ)
    parts: Iterable[bytes] = answered
    try:
        status = int(text.split()[0])
        lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if request.modern and "Content-Length" not in headers and status not in NO_BODY:
            lines.append((b"transfer-encoding", b"chunked"))
            parts = _in_chunks(parts)
        _send(connection, head(status, lines, last=request.last), parts)
    finally:
        _close(answered)


def _send(connection: Connection, begin: bytes, parts: Iterable[bytes]) -> None:
    """The head and the first part by one write."""
    for part in parts:
        connection.socket.sendall(begin + part)
        begin = b""
    if begin:
        connection.socket.sendall(begin)


def _in_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        if part:
            yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def _close(parts: Iterable[bytes]) -> None:
    close = getattr(parts, "close", None)
    if close is not None:
        close()


def environ_of(connection: Connection, request: HttpRequest) -> dict[str, Any]:
    """PEP 3333's environment of a request. httptools.HttpParserInvalidURLError where no path is asked for."""
    url = httptools.parse_url(request.target)
    host, port = connection.socket.getsockname()[:2]
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(url.path or b"/").decode("latin-1"),
        "QUERY_STRING": (url.query or b"").decode("latin-1"),
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": connection.peer,
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if connection.secure else "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers:
        key = name.decode("latin-1").upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value.decode("latin-1")
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = value.decode("latin-1")
    return environ
