"""A connection that was let in: one request after the other, each answered before the next is read."""

from __future__ import annotations

from collections.abc import Callable

from extender.serving.connection import Connection
from extender.serving.refusals import LimitRefusals
from extender.serving.requests import HeldBytes, HttpRequest, Over, Requests

Answers = Callable[[Connection, HttpRequest], None]
"""Writes the answer; OSError where the peer has ended the connection."""


class HttpService:
    """answers: made anew for each connection, so that what it remembers is one caller's. most_bytes: of a body."""

    def __init__(self, answers: Callable[[], Answers], most_bytes: int, refusals: LimitRefusals) -> None:
        self._answers, self._most_bytes, self._refusals = answers, most_bytes, refusals
        self._held = HeldBytes()

    def serve(self, connection: Connection) -> None:
        """Until the connection ends. OSError where its peer ends it within an answer."""
        requests, answer = Requests(connection.socket, self._most_bytes, self._held), self._answers()
        try:
            while (request := requests.next()) is not None:
                answer(connection, request)
                if request.last:
                    return
        except Over as over:
            if over.limit:
                self._refusals.over(over.limit, connection.peer)
            connection.socket.sendall(over.written)
        finally:
            requests.release()
