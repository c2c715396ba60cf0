"""The gRPC server of the report stream: one asyncio loop on a thread of its own, however many enforcers there are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

import grpc
import structlog

from extender.cluster.state import Cluster, Promise
from extender.reports.incoming import BadMessage, OutOfBounds
from extender.reports.outgoing import expect
from extender.reports.session import NotYours, Session, Taps
from proto import bounds
from proto import report_pb2 as pb
from proto import report_pb2_grpc as rpc
from proto.certificates import Loaded, Renewed

_log = structlog.get_logger("reports")

STOP_SECONDS = 2.0
"""How long open streams may take to hear that the extender leaves."""

_OPTIONS = (
    ("grpc.max_receive_message_length", bounds.MESSAGE_BYTES),
    ("grpc.max_send_message_length", bounds.MESSAGE_BYTES),
    # A node that lost power closes nothing: its stream is found dead by these pings.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.so_reuseport", 0),
)


class Denied(Exception):
    """The token does not prove which node it speaks for; the text says why."""


class Unproven(Exception):
    """The token could not be checked now."""


Identify = Callable[[str], str]
"""From a bearer token to the node's name; Denied or Unproven. It may take its time: it runs on a thread of its own."""


class Server:
    """start() returns once the port is bound; promise() may be called from any thread."""

    def __init__(
        self, cluster: Cluster, taps: Taps, address: str, tls: Renewed | None = None, identify: Identify | None = None
    ) -> None:
        self.port = 0
        self._streams = _Streams(cluster, taps, identify)
        self._address = address
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._bound = threading.Event()
        self._failed: Exception | None = None
        self._stop = asyncio.Event()

    def start(self) -> None:
        """OSError when the address can't be bound."""
        self._thread.start()
        self._bound.wait()
        if self._failed is not None:
            raise OSError(f"{self._address}: {self._failed}") from self._failed

    def stop(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS + 5)

    def promise(self, promises: Iterable[Promise]) -> None:
        """Sends each to its node's enforcer; one that is not connected gets it when it comes."""
        for one in promises:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._streams.send, one.node, expect(one))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        try:
            server = grpc.aio.server(options=_OPTIONS)
            rpc.add_ReportsServicer_to_server(self._streams, server)
            if self._tls is None:
                self.port = server.add_insecure_port(self._address)
            else:
                self.port = server.add_secure_port(self._address, _credentials(self._tls))
            await server.start()
        except (OSError, RuntimeError) as bad:
            self._failed = bad
            return
        finally:
            self._bound.set()
        await self._stop.wait()
        self._streams.close()
        await server.stop(STOP_SECONDS)


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

    def __init__(self, cluster: Cluster, taps: Taps, identify: Identify | None) -> None:
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
        session = Session(self._cluster, self._taps, self._cluster.clock, await self._proven(context))
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
        session: Session,
        queue: asyncio.Queue[pb.ToEnforcer | None],
    ) -> None:
        try:
            promised = False
            async for message in messages:
                answers = session.receive(message)
                if queue.qsize() + len(answers) > bounds.UNREAD_MESSAGES:
                    raise OutOfBounds(f"{bounds.UNREAD_MESSAGES} answers are waiting to be read")
                for answer in answers:
                    queue.put_nowait(answer)
                if message.HasField("hello"):
                    self._arrived(session.node, queue)
                if session.in_step and not promised:
                    promised = True
                    for promise in self._cluster.pending(session.node):
                        queue.put_nowait(expect(promise))
        finally:
            queue.put_nowait(None)

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
