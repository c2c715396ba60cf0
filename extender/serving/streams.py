"""Server-sent events: a WSGI application's answer of type text/event-stream is not the end.

From time to time the application is asked again, from the last event's id on, just as a browser does when such an
answer ends, and what it answers is sent on. Each question passes all checks anew: who may not read any more is sent no
more.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from werkzeug.test import run_wsgi_app
from werkzeug.wsgi import ClosingIterator

from extender.serving import limits
from extender.serving.wsgi import WsgiApp

EVERY_S = 2.0
"""Seconds between two questions."""

MEDIA = "text/event-stream"

_ID = re.compile(rb"^id: ?([^\r\n]*)", re.MULTILINE)


class EventStreams:
    """A WSGI application over another one. A stream waits on its connection's thread."""

    def __init__(self, app: WsgiApp) -> None:
        self._app = app
        self._places = threading.BoundedSemaphore(limits.STREAMS)
        self._ended = threading.Event()

    def end(self) -> None:
        """Every stream ends, in order, once its present part is sent."""
        self._ended.set()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        parts, status, headers = run_wsgi_app(self._app, environ)
        asked = environ["REQUEST_METHOD"] == "GET"
        if not (asked and _is_stream(status, headers) and self._places.acquire(blocking=False)):
            start_response(status, headers.to_wsgi_list())
            return parts
        headers.remove("Content-Length")
        start_response(status, headers.to_wsgi_list())
        return ClosingIterator(self._parts(b"".join(parts), environ), self._places.release)

    def _parts(self, part: bytes, environ: dict[str, Any]) -> Iterator[bytes]:
        until, last = time.monotonic() + limits.STREAM_S, b""
        while True:
            yield part
            ids = _ID.findall(part)
            last = ids[-1] if ids else last
            if self._ended.wait(EVERY_S) or time.monotonic() > until:
                return
            asked = {**environ, "wsgi.input": io.BytesIO(), "HTTP_LAST_EVENT_ID": last.decode("latin-1")}
            parts, status, headers = run_wsgi_app(self._app, asked, buffered=True)
            if not _is_stream(status, headers):
                return
            part = b"".join(parts)


def _is_stream(status: str, headers: Any) -> bool:
    return status.startswith("200 ") and headers.get("Content-Type", "").startswith(MEDIA)
