"""The program's ports and signals: one event loop reads and writes, threads answer."""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import signal
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
import uvicorn
from flask import Flask

from extender.config import BadConfig, ExtenderConfig, host_and_port
from extender.scheduler.calls import SchedulerCall
from extender.serving import limits
from extender.serving.gateway import VERBS, Gateway
from extender.serving.listener import Listener
from extender.serving.refusals import LimitRefusals
from extender.serving.selector import FairSelector
from extender.serving.workers import Workers
from numakin.process.threads import Threads
from numakin.wire.certificates import Renewed

DRAIN_S = 10.0
"""Seconds for requests under way at shutdown; kube-scheduler's own httpTimeout is 5 s unless set."""

BACKLOG = 2048
"""Connections that wait to be accepted."""

HEALTH = ("healthz", "readyz", "metrics")
"""Paths of probes and of Prometheus."""

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
    visits all of them and finds nothing. Young objects are collected often: connections that ended are cycles, and to
    free a thousand of them at once takes 0.1 s.
    """
    gc.set_threshold(5_000, 10, 5_000)


class Application:
    """Runs the program: ports, threads and signals. begin gets the bound HTTP address once both ports are bound.

    certified: whether whoever shows this certificate may ask for kube-scheduler's verbs.
    """

    def __init__(
        self,
        config: ExtenderConfig,
        load: Callable[[], Flask],
        calls: Mapping[str, SchedulerCall],
        begin: Callable[[str], None],
        end: Callable[[], None],
        *,
        threads: Threads,
        refusals: LimitRefusals,
        tls: Renewed | None = None,
        certified: Callable[[Mapping[str, Any]], bool] = lambda _certificate: True,
    ) -> None:
        self._config, self._load, self._calls = config, load, calls
        self._begin, self._end = begin, end
        self._threads, self._refusals, self._tls, self._certified = threads, refusals, tls, certified

    def run(self) -> None:
        """SystemExit: 0 when it was asked to end, 1 when it could not begin."""
        try:
            selector = FairSelector()
            with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
                runner.run(self._serve(selector))
        except (BadConfig, OSError) as bad:
            _log.error("can't start", why=str(bad))
            raise SystemExit(1) from bad

    async def _serve(self, selector: FairSelector) -> None:
        signals = _Signals()
        _allow_descriptors()
        workers = {
            **dict.fromkeys(VERBS, Workers("scheduler", self._config.threads, self._threads)),
            "api": Workers("reader", limits.READERS, self._threads),
            **dict.fromkeys(HEALTH, Workers("probe", limits.PROBES, self._threads)),
        }
        gateway = Gateway(self._load(), self._calls, workers, self._refusals, self._certified)
        listening = _bound(self._config.listen)
        ports = [Listener(listening, _uvicorn(gateway), self._tls, self._refusals, selector, at_once=gateway.at_once)]
        if self._config.health_listen:
            health = _bound(self._config.health_listen)
            ports.append(Listener(health, _uvicorn(gateway), None, self._refusals, selector, at_once=gateway.at_once))
        for pool in {id(pool): pool for pool in workers.values()}.values():
            pool.start()
        self._begin(_address(listening.getsockname()))
        serving = [asyncio.create_task(port.serve()) for port in ports]
        grace_s = await signals.asked()
        gateway.events.end()
        for task in serving:
            task.cancel()
        await asyncio.gather(*(port.close(grace_s) for port in ports))
        await asyncio.to_thread(self._end)


class _Signals:
    """SIGTERM and SIGINT ask for an orderly end, SIGQUIT for one at once."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._grace_s: asyncio.Future[float] = loop.create_future()
        for number, grace_s in ((signal.SIGTERM, DRAIN_S), (signal.SIGINT, DRAIN_S), (signal.SIGQUIT, 0.0)):
            loop.add_signal_handler(number, self._end, grace_s)

    async def asked(self) -> float:
        """How long answers under way may take."""
        return await self._grace_s

    def _end(self, grace_s: float) -> None:
        if not self._grace_s.done():
            self._grace_s.set_result(grace_s)


def _allow_descriptors() -> None:
    """As many as the system lets us have: each connection takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _bound(address: str) -> socket.socket:
    host, port = host_and_port("listen", address)
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(where)
    listening.listen(BACKLOG)
    return listening


def _uvicorn(gateway: Gateway) -> uvicorn.Config:
    """Of uvicorn only the protocol is used: ports, signals and logs are ours."""
    config = uvicorn.Config(
        gateway,
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=limits.KEEPALIVE_S,
        h11_max_incomplete_event_size=limits.HEADER_BYTES,
    )
    config.load()
    return config


def _address(name: tuple[Any, ...]) -> str:
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
