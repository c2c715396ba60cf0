"""The enforcer's port, as rounds of a supervised thread: bound whenever it can be, and nothing else waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from numakin.process.log import Log

log = Log("observer.port")

ROUND_S = 0.5
"""A round waits so long for a request, in seconds."""

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
        try:
            return make_server(host or "0.0.0.0", int(number), self._app, _Server, _QuietHandler)
        except OSError as error:
            why = error.strerror or error
            raise PortError(f"metrics port {self._listen} can't be served: {why}; all else goes on") from None


class _Server(ThreadingMixIn, WSGIServer):
    """A slow reader of metrics must not keep the kubelet's probe waiting."""

    daemon_threads = True
    timeout = ROUND_S


class _QuietHandler(WSGIRequestHandler):
    """Without a line on stderr for each probe. Who asks nothing for `timeout` seconds is cut off."""

    timeout = 10.0

    def handle(self) -> None:
        with suppress(TimeoutError):
            super().handle()

    def log_message(self, *_: object) -> None: ...
