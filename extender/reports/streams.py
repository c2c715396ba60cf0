"""The report streams of all enforcers, on the loop of `server`: who speaks for which node, and what each is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import grpc

from extender.cluster import Cluster
from extender.ledger import Nomination
from extender.reports.incoming import BadMessage, OutOfBounds
from extender.reports.outgoing import expect, settings
from extender.reports.session import NotYours, ReportSession, SessionCallbacks
from numakin.process.log import Log
from numakin.wire import bounds
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc

_log = Log("reports")


class Denied(Exception):
    """The token does not prove which node it speaks for; the text says why."""


class Unproven(Exception):
    """The token could not be checked now."""


TOKENS_AT_ONCE = 4
"""Of enforcers that come at once; the others wait. asyncio has four threads more than there are CPUs: where the API
server takes its time, those that have come already are served on the rest of them.
"""

Identify = Callable[[str], str]
"""From a bearer token to the node's name; Denied or Unproven. It may take its time: it runs on a thread of its own."""


Refusal: TypeAlias = tuple[grpc.StatusCode, str]


class Unsent:
    """In order, and at the end None. One that is further behind than the bound has its stream ended: what waits is
    dropped, since a peer that does not read may never do so again.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[pb.ToEnforcer | None] = asyncio.Queue()
        self._ended = False
        self.behind = False
        """Whether it was ended for that."""

    async def next(self) -> pb.ToEnforcer | None:
        return await self._queue.get()

    def put(self, messages: Sequence[pb.ToEnforcer]) -> None:
        if self._ended:
            return
        if self._queue.qsize() + len(messages) > bounds.UNREAD_MESSAGES:
            self.behind = True
            while not self._queue.empty():
                self._queue.get_nowait()
            self.end()
            return
        for message in messages:
            self._queue.put_nowait(message)

    def end(self) -> None:
        """After what waits."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(None)


class Streams(rpc.ReportsServicer):
    """All on the loop's thread."""

    def __init__(self, cluster: Cluster, taps: SessionCallbacks, identify: Identify | None) -> None:
        self._cluster = cluster
        self._taps = taps
        self._identify = identify
        self._tokens = asyncio.Semaphore(TOKENS_AT_ONCE)
        self._unsent: dict[str, Unsent] = {}
        self._closing = False

    def close(self) -> None:
        """Ends every stream."""
        self._closing = True
        for unsent in self._unsent.values():
            unsent.end()

    def send(self, node: str, message: pb.ToEnforcer) -> None:
        if unsent := self._unsent.get(node):
            unsent.put([message])

    def send_all(self, message: pb.ToEnforcer) -> None:
        """To every enforcer that is connected."""
        for unsent in self._unsent.values():
            unsent.put([message])

    async def Stream(  # noqa: N802 - the service's own name for it
        self, messages: AsyncIterator[pb.FromEnforcer], context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        session = ReportSession(self._cluster, self._taps, self._cluster.clock, await self._proven(context))
        unsent = Unsent()
        reader = asyncio.create_task(self._read(messages, session, unsent))
        try:
            while (message := await unsent.next()) is not None:
                await context.write(message)
            if self._closing:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the extender is shutting down")
            elif unsent.behind:
                await self._ended((grpc.StatusCode.RESOURCE_EXHAUSTED, BEHIND), context)
            elif reader.done():
                await self._ended(reader.result(), context)
            else:
                await context.abort(grpc.StatusCode.ABORTED, f"another stream of node {session.node} took over")
        finally:
            reader.cancel()
            if self._unsent.get(session.node) is unsent:
                del self._unsent[session.node]
                self._cluster.disconnected(session.node)
                _log.info("enforcer gone", node=session.node, peer=context.peer())

    async def _proven(self, context: grpc.aio.ServicerContext[Any, Any]) -> str | None:
        """The node that the caller may speak for; None: any."""
        if self._identify is None:
            return None
        header = str(dict(context.invocation_metadata() or ()).get("authorization", ""))
        try:
            return await asyncio.shield(self._identified(self._identify, header.removeprefix("Bearer ")))
        except Denied as bad:
            _log.warning("enforcer denied", why=str(bad), peer=context.peer())
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(bad))
        except Unproven as bad:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(bad))
        return None

    async def _identified(self, identify: Identify, token: str) -> str:
        """To its end, though the caller may have left: its thread is asking all the same."""
        async with self._tokens:
            return await asyncio.to_thread(identify, token)

    async def _read(
        self,
        messages: AsyncIterator[pb.FromEnforcer],
        session: ReportSession,
        unsent: Unsent,
    ) -> Refusal | None:
        """Why a message was refused, in words alone: the exception would keep the message as long as itself."""
        try:
            async for message in messages:
                before = session.in_step
                unsent.put(session.receive(message))
                if message.HasField("hello"):
                    self._arrived(session.node, unsent)
                due = await self._due(session, message, began=session.in_step and not before)
                unsent.put([expect(nomination) for nomination in due])
                if session.in_step and (gone := self._cluster.departed(session.node)):
                    unsent.put([pb.ToEnforcer(gone=pb.Gone(pods=gone))])
        except tuple(_CODES) as bad:
            return _CODES[type(bad)], str(bad)
        finally:
            unsent.end()
        return None

    async def _due(self, session: ReportSession, message: pb.FromEnforcer, *, began: bool) -> Iterable[Nomination]:
        """What is to be sent to the enforcer now. began: its stream or its hook has just begun anew; then each of its
        pending pods is decided on, and the other nodes' streams do not wait for that.
        """
        if began:
            pending = await asyncio.to_thread(self._cluster.pending, session.node)
            return (*pending, *self._cluster.facts(session.node))
        reservations = message.report.reservations if session.in_step else ()
        return (
            self._cluster.facts(session.node, {reservation.pod for reservation in reservations}) if reservations else ()
        )

    def _arrived(self, node: str, unsent: Unsent) -> None:
        older = self._unsent.get(node)
        self._unsent[node] = unsent
        if older is not None:
            older.end()
        namespaces = self._cluster.namespaces
        if namespaces is not None:
            unsent.put([settings(namespaces)])
        _log.info("enforcer here", node=node, instead_of_another=older is not None)

    async def _ended(self, refusal: Refusal | None, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        if refusal is None:
            return
        code, why = refusal
        self._taps.counted("refused")
        _log.warning("report refused", why=why, peer=context.peer())
        await context.abort(code, why)


BEHIND = f"{bounds.UNREAD_MESSAGES} messages are waiting to be read"

_CODES: dict[type[Exception], grpc.StatusCode] = {
    NotYours: grpc.StatusCode.PERMISSION_DENIED,
    OutOfBounds: grpc.StatusCode.RESOURCE_EXHAUSTED,
    BadMessage: grpc.StatusCode.INVALID_ARGUMENT,
}
