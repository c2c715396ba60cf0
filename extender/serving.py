"""gunicorn, embedded: one worker of threads, which holds the whole state of the program.

kube-scheduler's client keeps idle connections for 90 s. A server that closes them earlier loses calls that cross the
close on their way, and lost prioritize calls are lost silently; hence a keep-alive longer than that.
"""

from __future__ import annotations

import errno
import gc
import socket
import time
from collections.abc import Callable
from typing import Any

import structlog
from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from extender.config import BadConfig, Config, host_and_port
from proto.certificates import Renewed

KEEPALIVE = 120
"""Seconds; over the 90 s of Go's http.DefaultTransport."""

CONNECTIONS = 1_000
"""Open HTTP connections. kube-scheduler has a few; the rest are people and Prometheus."""

DRAIN = 10
"""Seconds for requests under way at shutdown; kube-scheduler's own httpTimeout is 5 s unless set."""


PORT_PATIENCE_S = 3.0
"""How long a port may still be a predecessor's that is just ending."""

_log = structlog.get_logger("extender")


def check_free(option: str, address: str) -> None:
    """BadConfig when this address can't be listened at; the servers' own errors are pages long."""
    host, port = host_and_port(option, address)
    flag = "--" + option.replace("_", "-")
    until = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                return tried.bind(where)
        except socket.gaierror as bad:
            raise BadConfig(f"{flag} {address}: {host!r} is no address of this host: {bad.strerror}") from bad
        except OSError as bad:
            if bad.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise BadConfig(f"{flag} {address}: {bad.strerror}; choose another, or end who has it") from bad
        time.sleep(0.1)


def calm_collector() -> None:
    """Makes full garbage collections rare: one stops every thread for a millisecond per ten nodes or so.

    What the cluster is made of are immutable values without cycles, which go by reference counting alone; a collection
    looks at all of them and finds nothing.
    """
    gc.set_threshold(50_000, 5, 1_000)


class Application(BaseApplication):  # type: ignore[misc]
    """begin and end run in the worker: threads and gRPC don't survive a fork. begin gets the bound HTTP address."""

    def __init__(
        self,
        config: Config,
        load: Callable[[], Flask],
        begin: Callable[[str], None],
        end: Callable[[], None],
        tls: Renewed | None = None,
    ) -> None:
        self._config = config
        self._tls = tls
        self._load = load
        self._begin = begin
        self._end = end
        super().__init__()

    def load_config(self) -> None:
        settings: dict[str, Any] = {
            "bind": [self._config.listen],
            "workers": 1,
            "worker_class": "gthread",
            "threads": self._config.threads,
            "worker_connections": CONNECTIONS,
            "keepalive": KEEPALIVE,
            "graceful_timeout": DRAIN,
            # A worker that waits for a slow caller is not a dead one, and its state must not be thrown away.
            "timeout": 120,
            "control_socket_disable": True,
            "proc_name": "numakin-extender",
            "logger_class": _Logger,
            "loglevel": self._config.log_level,
            "post_worker_init": lambda worker: self._begun(_address(worker.sockets[0].getsockname())),
            "worker_exit": lambda _server, _worker: self._end(),
        }
        tls = self._tls
        if tls is not None:
            # The file's name alone switches TLS on; the context is asked for at each connection.
            settings["certfile"] = self._config.tls_cert
            settings["ssl_context"] = lambda _config, _default: tls.current().context
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._load()

    def run(self) -> None:
        """SystemExit: 0 when it was asked to end, 1 when it could not begin."""
        try:
            super().run()
        except SystemExit as left:
            raise SystemExit(1 if left.code else 0) from None

    def _begun(self, http: str) -> None:
        try:
            self._begin(http)
        except (BadConfig, OSError) as bad:
            _log.error("can't start", why=str(bad))
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from bad


class _Logger(Logger):  # type: ignore[misc]
    """gunicorn's lines go where all others go."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def _address(name: tuple[Any, ...]) -> str:
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
