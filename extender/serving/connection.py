"""One HTTP connection: uvicorn's h11 protocol, with a deadline in each phase of a request, and kube-scheduler's calls
answered in one step.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from extender.scheduler.calls import CallAnswer
from extender.serving import limits
from extender.serving.one_step import OneStep, written
from extender.serving.refusals import LimitRefusals

DEADLINES = {"headers": ("header_s", limits.HEADER_S), "request": ("request_s", limits.REQUEST_S)}
"""The phases that may not last, with their limits. An idle connection is closed by uvicorn's keep-alive timer."""

MOMENT_S = 0.05
"""So long the rest of a call may take to come before it is one like all others: Go writes 4 KiB at a time."""

STRANGERS, KNOWN = range(2), range(2, 4)
"""Ranks, see `Connection.rank`; 0 is a connection that has not been looked at."""


class Connection(H11Protocol):
    """accepted: its socket. peer: the client's address. identity: its verified certificate, as
    `ssl.SSLSocket.getpeercert` has it; empty without one. answered: whether a request of it was. closed: done when the
    connection is. known: told once who it is: by its certificate, or where the port has no TLS by a request that was
    answered. at_once: answers a call by its path and body, or says by None that this is not to be done here.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        accepted: socket.socket,
        peer: str,
        refusals: LimitRefusals,
        *,
        known: Callable[[], None],
        at_once: Callable[[Connection, str, bytes], CallAnswer | None],
    ) -> None:
        super().__init__(config, state, {"connection": self})
        self.accepted, self.peer = accepted, peer
        self.identity: dict[str, Any] = {}
        self.answered = False
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self._refusals, self._known, self._at_once = refusals, known, at_once
        self._begun: OneStep | None = None
        self._moment: asyncio.TimerHandle | None = None
        self._phase = ""
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is being answered, and it is not cut off yet."""
        return self._phase not in {"request", "cut off", "closed"}

    @property
    def rank(self) -> int:
        """How well it is known: 1 not at all, 2 answered on a port without TLS, 3 by its certificate."""
        return 3 if self.identity else 1 + (self.answered and self.scheme == "http")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.identity = transport.get_extra_info("peercert") or {}
        if self.identity:
            self._known()
        self._enter("headers")

    def data_received(self, data: bytes) -> None:
        if not self._taken(data):
            self._read_by_own(self._begun.data if self._begun is not None else data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._has_answered()
        if self._answering or self.conn.trailing_data[0]:
            self._enter("request" if self._answering else "headers")

    def shutdown(self) -> None:
        self._hand_over()
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_begun()
        super().connection_lost(exc)
        self._enter("closed")
        if not self.closed.done():
            self.closed.set_result(None)

    def cut_off(self) -> None:
        """As if the peer had ended it: asyncio, which may be about to shake hands, finds that and closes the socket."""
        self._enter("cut off")
        with suppress(OSError):
            self.accepted.shutdown(socket.SHUT_RDWR)

    def abort(self) -> None:
        """Closes at once, unsent bytes and all; nothing where it is closed."""
        if self.transport is not None and not self.closed.done():
            self.transport.abort()

    def _taken(self, data: bytes) -> bool:
        """Whether nothing is left to the connection's own h11: the call is answered, or its rest is waited for."""
        begun = self._begun or self._new()
        if begun is None:
            return False
        self._begun = begun
        if not begun.read(data) or self.flow.write_paused or self.transport.is_closing():
            return False
        if not begun.whole:
            if self._moment is None:
                self._moment = self.loop.call_later(MOMENT_S, self._hand_over)
            return True
        answer = self._at_once(self, begun.path, begun.body)
        if answer is None:
            return False
        self._forget_begun()
        self.transport.write(written(answer))
        if answer.then is not None:
            answer.then()
        if answer.after is not None:
            answer.after()
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self._has_answered()
        return True

    def _new(self) -> OneStep | None:
        """None in the midst of a request that is read already."""
        idle = self._phase != "cut off" and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        return OneStep() if idle else None

    def _hand_over(self) -> None:
        """What has begun, to the connection's own h11."""
        if self._begun is not None:
            self._read_by_own(self._begun.data)

    def _read_by_own(self, data: bytes) -> None:
        self._forget_begun()
        super().data_received(data)
        self._enter("request" if self._answering else "headers")

    def _forget_begun(self) -> None:
        self._begun = None
        if self._moment is not None:
            self._moment.cancel()
            self._moment = None

    def _has_answered(self) -> None:
        if not self.answered and self.scheme == "http":
            self._known()
        self.answered = True
        self._enter("idle")

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _enter(self, phase: str) -> None:
        if phase == self._phase or (self._phase == "cut off" and phase != "closed"):
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if phase in DEADLINES:
            self._deadline = self.loop.call_later(DEADLINES[phase][1], self._expired, phase)

    def _expired(self, phase: str) -> None:
        self._refusals.over(DEADLINES[phase][0], self.peer)
        self.abort()
