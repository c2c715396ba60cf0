"""The gRPC server of the report stream: one asyncio loop on a thread of its own, however many enforcers there are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import grpc

from extender.cluster import Cluster
from extender.ledger import Nomination
from extender.reports.outgoing import expect, settings
from extender.reports.session import SessionCallbacks
from extender.reports.streams import Identify, Streams
from numakin.placement.namespaces import Namespaces
from numakin.process.log import Log
from numakin.process.threads import Threads
from numakin.wire import bounds, keepalive
from numakin.wire import report_pb2_grpc as rpc
from numakin.wire.certificates import Loaded, Renewed
from numakin.wire.keepalive import Keepalive

_log = Log("reports")

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
        self._opened = partial(Streams, cluster, taps, identify)
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

    def nominate(self, nominations: Iterable[Nomination]) -> None:
        """Sends each to its node's enforcer; an enforcer that is not connected gets it once it connects."""
        serving = self._serving
        if serving is None:
            return
        for nomination in nominations:
            serving.call(partial(serving.streams.send, nomination.node, expect(nomination)))

    def set_namespaces(self, namespaces: Namespaces) -> None:
        """Sends every enforcer what operators have set; one that is not connected gets it once it connects."""
        serving = self._serving
        if serving is not None:
            serving.call(partial(serving.streams.send_all, settings(namespaces)))

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
            self.port = server.add_secure_port(address, _server_credentials(self._tls))


@dataclass(frozen=True, slots=True)
class _Serving:
    """One life of the loop."""

    streams: Streams
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self, what: Callable[[], None]) -> None:
        """On the loop's thread; nothing when that has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(what)


def _server_credentials(tls: Renewed) -> grpc.ServerCredentials:
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
