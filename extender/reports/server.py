"""The gRPC server of the report stream: one asyncio loop on a thread of its own, however many enforcers there are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import grpc
import structlog

from extender.cluster import Cluster
from extender.ledger import Nomination
from extender.reports.incoming import BadMessage, OutOfBounds
from extender.reports.outgoing import expect
from extender.reports.session import NotYours, ReportSession, SessionCallbacks
from process.threads import Threads
from proto import bounds, keepalive
from proto import report_pb2 as pb
from proto import report_pb2_grpc as rpc
from proto.certificates import Loaded, Renewed
from proto.keepalive import Keepalive

_log = structlog.get_logger("reports")

BEAT_S = 1.0
"""The loop shows so often that nothing holds it up."""

STALE_AFTER_S = 20.0

STOP_SECONDS = 2.0
"""How long open streams may take to end when the extender does."""

_OPTIONS = (
    ("grpc.max_receive_message_length", bounds.MESSAGE_BYTES),
    ("grpc.max_send_message_length", bounds.MESSAGE_BYTES),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", keepalive.LEAST_RECEIVED_MS),
    ("grpc.so_reuseport", 0),
)


class Denied(Exception):
    """The token does not prove which node it speaks for; the text says why."""


class Unproven(Exception):
    """The token could not be checked now."""


Identify = Callable[[str], str]
"""From a bearer token to the node's name; Denied or Unproven. It may take its time: it runs on a thread of its own."""


class Server:
    """start() returns once the port is bound; nomination() may be called from any thread. Should the loop ever fail,
    the port is opened anew, and enforcers dial it again.
    """

    def __init__(
        self,
        cluster: Cluster,
        taps: SessionCallbacks,
        address: str,
        tls: Renewed | None = None,
        identify: Identify | None = None,
        *,
        threads: Threads,
        keepalive: Keepalive = keepalive.EXTENDER,
    ) -> None:
        """keepalive: how a node that hangs or lost power is found."""
        self.port = 0
        self._keepalive = keepalive
        self._opened = partial(_Streams, cluster, taps, identify)
        self._address = address
        self._tls = tls
        self._thread = threads.thread("reports", self._serve, stale_after_s=STALE_AFTER_S, essential=True)
        self._bound = threading.Event()
        self._failed: Exception | None = None
        self._serving: _Serving | None = None

    def start(self) -> None:
        """OSError when the address can't be bound."""
        self._thread.start()
        self._bound.wait()
        if self._failed is not None:
            raise OSError(f"{self._address}: {self._failed}") from self._failed

    def stop(self) -> None:
        self._thread.stop()
        serving = self._serving
        if serving is not None:
            serving.call(serving.stop.set)
        self._thread.stop(STOP_SECONDS + 5)

    def nomination(self, nominations: Iterable[Nomination]) -> None:
        """Sends each to its node's enforcer; an enforcer that is not connected gets it once it connects."""
        serving = self._serving
        if serving is None:
            return
        for nomination in nominations:
            serving.call(partial(serving.streams.send, nomination.node, expect(nomination)))

    def _serve(self) -> None:
        """One loop and one port, until it is asked to stop."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        serving = self._serving = _Serving(self._opened(), loop)
        try:
            loop.run_until_complete(loop.create_task(self._run(serving)))
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.close()

    async def _run(self, serving: _Serving) -> None:
        server = grpc.aio.server(options=(*_OPTIONS, *self._keepalive.options))
        rpc.add_ReportsServicer_to_server(serving.streams, server)
        try:
            self._bind(server)
            await server.start()
        except (OSError, RuntimeError) as bad:
            if self._bound.is_set():
                raise
            self._failed = bad
            self._thread.stop()
            return
        finally:
            self._bound.set()
        try:
            while not (serving.stop.is_set() or self._thread.stopping.is_set()):
                self._thread.progress()
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(serving.stop.wait(), BEAT_S)
        finally:
            serving.streams.close()
            await server.stop(STOP_SECONDS)

    def _bind(self, server: grpc.aio.Server) -> None:
        """A port that was free to choose stays what it was."""
        address = f"{self._address.rpartition(':')[0]}:{self.port}" if self.port else self._address
        if self._tls is None:
            self.port = server.add_insecure_port(address)
        else:
            self.port = server.add_secure_port(address, _credentials(self._tls))


@dataclass(frozen=True, slots=True)
class _Serving:
    """One life of the loop."""

    streams: _Streams
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self, what: Callable[[], None]) -> None:
        """On the loop's thread; nothing when that has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(what)


def _credentials(tls: Renewed) -> grpc.ServerCredentials:
    """The certificates are asked for at each connection; those that stream already are left alone."""
    shown = tls.current()

    def newer() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        now = tls.current()
        if now is shown:
            return None
        shown = now
        return _configuration(now)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        newer,  # type: ignore[arg-type]  # None, for no change, is part of grpc's contract
        require_client_authentication=bool(shown.ca),
    )


def _configuration(loaded: Loaded) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(loaded.key, loaded.cert)], loaded.ca or None)


class _Streams(rpc.ReportsServicer):
    """All on the loop's thread."""

    def __init__(self, cluster: Cluster, taps: SessionCallbacks, identify: Identify | None) -> None:
        self._cluster = cluster
        self._taps = taps
        self._identify = identify
        self._queues: dict[str, asyncio.Queue[pb.ToEnforcer | None]] = {}
        self._closing = False

    def close(self) -> None:
        """Ends every stream."""
        self._closing = True
        for queue in self._queues.values():
            queue.put_nowait(None)

    def send(self, node: str, message: pb.ToEnforcer) -> None:
        queue = self._queues.get(node)
        if queue is None:
            return
        if queue.qsize() >= bounds.UNREAD_MESSAGES:
            del self._queues[node]
            queue.put_nowait(None)
            return
        queue.put_nowait(message)

    async def Stream(  # noqa: N802 - the service's own name for it
        self, messages: AsyncIterator[pb.FromEnforcer], context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        session = ReportSession(self._cluster, self._taps, self._cluster.clock, await self._proven(context))
        queue: asyncio.Queue[pb.ToEnforcer | None] = asyncio.Queue()
        reader = asyncio.create_task(self._read(messages, session, queue))
        try:
            while (message := await queue.get()) is not None:
                await context.write(message)
            if self._closing:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the extender is shutting down")
            elif reader.done():
                await self._ended(reader, context)
            else:
                await context.abort(grpc.StatusCode.ABORTED, f"another stream of node {session.node} took over")
        finally:
            reader.cancel()
            if self._queues.get(session.node) is queue:
                del self._queues[session.node]
                self._cluster.disconnected(session.node)
                _log.info("enforcer gone", node=session.node, peer=context.peer())

    async def _proven(self, context: grpc.aio.ServicerContext[Any, Any]) -> str | None:
        """The node that the caller may speak for; None: any."""
        if self._identify is None:
            return None
        header = str(dict(context.invocation_metadata() or ()).get("authorization", ""))
        try:
            return await asyncio.to_thread(self._identify, header.removeprefix("Bearer "))
        except Denied as bad:
            _log.warning("enforcer denied", why=str(bad), peer=context.peer())
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(bad))
        except Unproven as bad:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(bad))
        return None

    async def _read(
        self,
        messages: AsyncIterator[pb.FromEnforcer],
        session: ReportSession,
        queue: asyncio.Queue[pb.ToEnforcer | None],
    ) -> None:
        try:
            async for message in messages:
                before = session.in_step
                answers = session.receive(message)
                if queue.qsize() + len(answers) > bounds.UNREAD_MESSAGES:
                    raise OutOfBounds(f"{bounds.UNREAD_MESSAGES} answers are waiting to be read")
                for answer in answers:
                    queue.put_nowait(answer)
                if message.HasField("hello"):
                    self._arrived(session.node, queue)
                for nomination in await self._due(session, message, began=session.in_step and not before):
                    queue.put_nowait(expect(nomination))
                if session.in_step and (gone := self._cluster.departed(session.node)):
                    queue.put_nowait(pb.ToEnforcer(gone=pb.Gone(pods=gone)))
        finally:
            queue.put_nowait(None)

    async def _due(self, session: ReportSession, message: pb.FromEnforcer, *, began: bool) -> Iterable[Nomination]:
        """What the enforcer is to be told now. began: its stream or its hook has just begun anew; then each of its
        pending pods is decided on, and the other nodes' streams do not wait for that.
        """
        if began:
            pending = await asyncio.to_thread(self._cluster.pending, session.node)
            return (*pending, *self._cluster.facts(session.node))
        reservations = message.report.reservations if session.in_step else ()
        return (
            self._cluster.facts(session.node, {reservation.pod for reservation in reservations}) if reservations else ()
        )

    def _arrived(self, node: str, queue: asyncio.Queue[pb.ToEnforcer | None]) -> None:
        older = self._queues.get(node)
        self._queues[node] = queue
        if older is not None:
            older.put_nowait(None)
        _log.info("enforcer here", node=node, instead_of_another=older is not None)

    async def _ended(self, reader: asyncio.Task[None], context: grpc.aio.ServicerContext[Any, Any]) -> None:
        failure = reader.exception()
        for kind, code in _CODES:
            if isinstance(failure, kind):
                self._taps.counted("refused")
                _log.warning("report refused", why=str(failure), peer=context.peer())
                await context.abort(code, str(failure))
        if failure is not None:
            raise failure


_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (NotYours, grpc.StatusCode.PERMISSION_DENIED),
    (OutOfBounds, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (BadMessage, grpc.StatusCode.INVALID_ARGUMENT),
)
