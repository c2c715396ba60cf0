"""The enforcer's port, as rounds of a supervised thread: bound whenever it can be, and nothing else waits for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from numakin.process.listening import both_families, take_both
from numakin.process.log import Log

log = Log("observer.port")

ROUND_S = 0.5
"""A round waits so long for a request, in seconds."""

MOST_CONNECTIONS = 64
"""At one time; Prometheus and the kubelet's probes have three or four. For one more the oldest is cut off: any pod may
reach the port, and each connection has a thread.
"""

App: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class PortError(RuntimeError):
    """The port can't be served now; says which and why."""


class Port:
    """Serves `app` at HOST:PORT."""

    def __init__(self, listen: str, app: App) -> None:
        self._listen, self._app = listen, app
        self._server: WSGIServer | None = None

    def serve(self) -> None:
        """One round: takes at most one request. PortError while the port can't be had."""
        if self._server is None:
            self._server = self._bound()
            log.info("the metrics port is served", address=self._listen)
        self._server.handle_request()

    def close(self) -> None:
        if self._server is not None:
            self._server.server_close()

    def _bound(self) -> WSGIServer:
        host, _, number = self._listen.rpartition(":")
        host = both_families(host.removeprefix("[").removesuffix("]"))
        kind = _Server6 if ":" in host else _Server
        try:
            return make_server(host, int(number), self._app, kind, _QuietHandler)
        except OSError as error:
            why = error.strerror or error
            raise PortError(f"metrics port {self._listen} can't be served: {why}; all else goes on") from None


class _Server(ThreadingMixIn, WSGIServer):
    """A slow reader of metrics must not keep the kubelet's probe waiting."""

    daemon_threads = True
    timeout = ROUND_S

    def __init__(self, *given: Any) -> None:
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, None] = {}
        """The oldest first."""
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections[request] = None
            oldest = next(iter(self._connections)) if len(self._connections) > MOST_CONNECTIONS else None
            if oldest is not None:
                del self._connections[oldest]
                with suppress(OSError):  # it has gone already
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)


class _Server6(_Server):
    """At an address of IPv6; at `::` for IPv4 too."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        take_both(self.socket)
        super().server_bind()


class _QuietHandler(WSGIRequestHandler):
    """Without a line on stderr for each probe. Who asks nothing for `timeout` seconds is cut off."""

    timeout = 10.0

    def handle(self) -> None:
        with suppress(TimeoutError, ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None: ...
