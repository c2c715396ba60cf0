"""Server-sent events without a thread for each reader.

An answer of type text/event-stream is not the end: from time to time the application is asked again, from the last
event's id on, just as a browser does when such an answer ends, and what it answers is sent on. Between two questions a
stream is a connection and nothing more. Each question passes all checks anew: who may not read any more is sent no
more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from extender.serving import limits

EVERY_S = 2.0
"""Seconds between two questions."""

MEDIA = b"text/event-stream"

_ID = re.compile(rb"^id: ?([^\r\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def events(self) -> bool:
        return self.status == 200 and dict(self.headers).get(b"content-type", b"").startswith(MEDIA)


Again = Callable[[str], Awaitable[HttpAnswer]]
"""Asks the application again, with the id of the last event."""


class EventStreams:
    """All streams of the program; made on its event loop."""

    def __init__(self) -> None:
        self._open = 0
        self._ended = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether an answer is better sent alone: its reader comes again by itself."""
        return self._open >= limits.STREAMS

    def end(self) -> None:
        """Every stream ends, in order, once its present part is sent."""
        self._ended.set()

    async def follow(self, first: HttpAnswer, again: Again, receive: Any, send: Any) -> None:
        """Sends the first answer and what comes after it."""
        self._open += 1
        gone, ended = asyncio.ensure_future(receive()), asyncio.ensure_future(self._ended.wait())
        try:
            headers = [header for header in first.headers if header[0] != b"content-length"]
            await send({"type": "http.response.start", "status": first.status, "headers": headers})
            await self._parts(first, again, send, {gone, ended})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._open -= 1
            gone.cancel()
            ended.cancel()

    async def _parts(self, answer: HttpAnswer, again: Again, send: Any, over: set[asyncio.Future[Any]]) -> None:
        clock = asyncio.get_running_loop().time
        until, last = clock() + limits.STREAM_S, b""
        while answer.events:
            await send({"type": "http.response.body", "body": answer.body, "more_body": True})
            ids = _ID.findall(answer.body)
            last = ids[-1] if ids else last
            done, _ = await asyncio.wait(over, timeout=EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if done or clock() > until:
                return
            answer = await again(last.decode("latin-1"))
