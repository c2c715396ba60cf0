"""From a connection's requests to the WSGI application's answers: what is let in, and which threads answer it."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

from werkzeug.test import run_wsgi_app

from extender.scheduler.calls import CallAnswer, SchedulerCall
from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.events import EventStreams, HttpAnswer
from extender.serving.one_step import date, headers_of
from extender.serving.refusals import LimitRefusals
from extender.serving.workers import Workers

VERBS = frozenset({"filter", "prioritize", "preempt"})
"""What kube-scheduler asks for."""


class Over(Exception):
    """A request that is not let in. limit: which it is over."""

    def __init__(self, limit: str, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.limit, self.status, self.text = limit, status, text


class Gateway:
    """An ASGI application. calls: by the verb, answered without WSGI. workers: by the first part of the path, where
    other parts count as "api". certified: whether a certificate may ask for kube-scheduler's VERBS.
    """

    def __init__(
        self,
        app: Any,
        calls: Mapping[str, SchedulerCall],
        workers: Mapping[str, Workers],
        refusals: LimitRefusals,
        certified: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._app, self._calls, self._workers = app, calls, workers
        self._refusals, self._certified = refusals, certified
        self._peers: Counter[str] = Counter()
        self._total = _HeldBytes()
        self.events = EventStreams()

    def at_once(self, connection: Connection, path: str, body: bytes) -> CallAnswer | None:
        """To a call that needs no thread; None for any other request. `after` puts what is left to do to one."""
        call = self._calls.get(path)
        if call is None or not self._certified(connection.identity):
            return None
        answer = call.at_once(body)
        if answer is None or answer.after is None:
            return answer
        return replace(answer, after=partial(self._workers[path].put, answer.after))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        connection: Connection = scope["state"]["connection"]
        held = _HeldBody(self._total)
        environ: dict[str, Any] = {}
        then = after = None
        try:
            with self._admitted(connection.peer):
                kind = _first_part(scope["path"])
                most = self._most(kind, connection)
                body = await held.read(receive, _announced(scope), most)
                if body is None:
                    return
                workers = self._workers.get(kind, self._workers["api"])
                call = self._calls.get(kind) if scope["method"] == "POST" and scope["path"] == f"/{kind}" else None
                if call is not None:
                    answered = await _called(call, body, workers)
                    answer, then, after = _json(answered), answered.then, answered.after
                else:
                    environ = _environ(scope, body, connection)
                    answer = await self._answer(environ, workers)
        except Over as over:
            self._refusals.over(over.limit, connection.peer)
            answer = _refusal(over)
        finally:
            held.release()
        if answer.events and not self.events.full:
            await self.events.follow(answer, partial(self._again, environ, workers), receive, send)
            return
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})
        if then is not None:
            then()
        if after is not None:
            workers.put(after)

    def _most(self, kind: str, connection: Connection) -> int:
        """Bytes that a request of this kind may have."""
        if kind not in VERBS:
            return limits.READER_BODY_BYTES
        if not self._certified(connection.identity):
            raise Over("certificate", HTTPStatus.UNAUTHORIZED, "kube-scheduler's client certificate is needed")
        return limits.BODY_BYTES

    async def _answer(self, environ: dict[str, Any], workers: Workers) -> HttpAnswer:
        return await workers.run(lambda: _answered(self._app, environ))

    async def _again(self, environ: dict[str, Any], workers: Workers, event: str) -> HttpAnswer:
        """The answer to the same request from that event on."""
        try:
            with self._admitted(environ["REMOTE_ADDR"]):
                asked = {**environ, "wsgi.input": io.BytesIO(), "HTTP_LAST_EVENT_ID": event}
                return await self._answer(asked, workers)
        except Over as over:
            self._refusals.over(over.limit, environ["REMOTE_ADDR"])
            return _refusal(over)

    @contextmanager
    def _admitted(self, peer: str) -> Iterator[None]:
        if self._peers.total() >= limits.IN_FLIGHT:
            raise Over("in_flight", HTTPStatus.SERVICE_UNAVAILABLE, f"over {limits.IN_FLIGHT} requests at once")
        if self._peers[peer] >= limits.IN_FLIGHT_PER_PEER:
            text = f"over {limits.IN_FLIGHT_PER_PEER} requests of one address at once"
            raise Over("in_flight_per_peer", HTTPStatus.TOO_MANY_REQUESTS, text)
        self._peers[peer] += 1
        try:
            yield
        finally:
            self._peers[peer] -= 1
            if not self._peers[peer]:
                del self._peers[peer]


def _first_part(path: str) -> str:
    """PART of /PART/...; empty where there is none."""
    return path.partition("/")[2].partition("/")[0]


async def _called(call: SchedulerCall, body: bytes, workers: Workers) -> CallAnswer:
    """Where a thread would take longer to wake than the answer takes, none is asked."""
    answer = call.at_once(body)
    return answer if answer is not None else await workers.run(lambda: call(body))


def _announced(scope: Any) -> int:
    """Bytes of the body, 0 where its length is not given; h11 has checked the number."""
    return int(dict(scope["headers"]).get(b"content-length", b"0"))


def _too_large(most: int) -> Over:
    text = f"the body is over the bound of {most} bytes"
    return Over("body_bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


class _HeldBytes:
    """Of all bodies that are being read or answered."""

    def __init__(self) -> None:
        self.size = 0


class _HeldBody:
    """One request's body, and its part of what is held."""

    def __init__(self, total: _HeldBytes) -> None:
        self._total, self._size = total, 0

    async def read(self, receive: Any, announced: int, most: int) -> bytes | None:
        """None when the caller has gone."""
        if announced > most:
            raise _too_large(most)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.BODY_S):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    parts.append(message["body"])
                    self._grow(len(message["body"]), most)
                    if not message["more_body"]:
                        return b"".join(parts)
        except TimeoutError as late:
            raise Over("body_s", HTTPStatus.REQUEST_TIMEOUT, f"the body took over {limits.BODY_S:g} s") from late

    def release(self) -> None:
        self._total.size -= self._size
        self._size = 0

    def _grow(self, size: int, most: int) -> None:
        self._size += size
        self._total.size += size
        if self._size > most:
            raise _too_large(most)
        if self._total.size > limits.HELD_BYTES:
            text = f"the bodies under way are over the bound of {limits.HELD_BYTES} bytes"
            raise Over("held_bytes", HTTPStatus.SERVICE_UNAVAILABLE, text)


def _environ(scope: Any, body: bytes, connection: Connection) -> dict[str, Any]:
    """PEP 3333's environment of a request."""
    host, port = (*(scope["server"] or ()), "", 0)[:2]
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": connection.peer,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value.decode("latin-1")
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = value.decode("latin-1")
    return environ


def _answered(app: Any, environ: dict[str, Any]) -> HttpAnswer:
    parts, status, headers = run_wsgi_app(app, environ, buffered=True)
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return HttpAnswer(int(status.split()[0]), [*encoded, date()], b"".join(parts))


def _json(answer: CallAnswer) -> HttpAnswer:
    return HttpAnswer(answer.status, headers_of(answer), answer.body)


def _refusal(over: Over) -> HttpAnswer:
    body = json.dumps({"error": over.text}).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close"), date()]
    return HttpAnswer(over.status, headers, body)
