"""The program's HTTP ports and signals."""

from __future__ import annotations

import errno
import gc
import queue
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from extender.config import host_and_port
from extender.serving.doorman import Doorman
from extender.serving.http_service import HttpService
from extender.serving.refusals import LimitRefusals
from numakin.process.listening import both_families, take_both
from numakin.process.log import Log
from numakin.process.options import ConfigError, flag
from numakin.process.signals import received
from numakin.process.threads import Threads
from numakin.wire.certificates import Renewed

DRAIN_S = 10.0
"""Seconds for requests under way at shutdown; kube-scheduler's own httpTimeout is 5 s unless set."""

GRACE_S = {signal.SIGTERM: DRAIN_S, signal.SIGINT: DRAIN_S, signal.SIGQUIT: 0.0}
"""What each signal that ends the program leaves to requests under way."""

BACKLOG = 2048
"""Connections that wait to be accepted."""

PORT_PATIENCE_S = 3.0
"""How long a port may still be a predecessor's that is just ending."""

SWITCH_S = 0.0005
"""After so long a thread that computes lets another go on that waits to: what answers kube-scheduler waits for the
threads beside it, each time it has waited for its socket. Python's own 5 ms are a whole cycle of kube-scheduler's.
"""

_log = Log("extender")


def check_free(option: str, address: str) -> None:
    """ConfigError when this address can't be listened at; the servers' own errors are pages long."""
    host, port = host_and_port(option, address)
    until = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            return _bound(host, port).close()
        except socket.gaierror as bad:
            raise ConfigError(f"{flag(option)} {address}: {host!r} is no address of this host: {bad.strerror}") from bad
        except OSError as bad:
            if bad.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise ConfigError(
                    f"{flag(option)} {address}: {bad.strerror}; choose another, or end who has it"
                ) from bad
        time.sleep(0.1)


def calm_collector() -> None:
    """Makes full garbage collections rare: one stops every thread for a millisecond per ten nodes or so.

    What the cluster is made of are immutable values without cycles, which go by reference counting alone; a collection
    visits all of them and finds nothing. Young objects are collected often: connections that ended are cycles, and to
    free a thousand of them at once takes 0.1 s.
    """
    gc.set_threshold(5_000, 10, 5_000)


@dataclass(frozen=True, slots=True)
class Served:
    """What is served at one address. tls: None for plain HTTP. certified: whether this client certificate is let in."""

    address: str
    port: HttpService
    tls: Renewed | None = None
    certified: Callable[[Mapping[str, Any]], bool] = lambda _certificate: True


class Application:
    """Runs the program: ports, threads and signals. served: by the port's name. begin: gets the bound addresses by
    these names, once all are bound. ending: called when the program is asked to end, before answers under way are
    waited for; end: once there are none.
    """

    def __init__(
        self,
        served: Mapping[str, Served],
        begin: Callable[[Mapping[str, str]], None],
        end: Callable[[], None],
        *,
        ending: Callable[[], None] = lambda: None,
        threads: Threads,
        refusals: LimitRefusals,
    ) -> None:
        self._served, self._begin, self._ending, self._end = served, begin, ending, end
        self._threads, self._refusals = threads, refusals
        self._begun: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._grace_s = 0.0

    def run(self) -> None:
        """On the main thread. SystemExit: 0 when it was asked to end, 1 when it could not begin."""
        self._threads.once("signals", partial(self._heed, received(GRACE_S)))
        try:
            self._serve()
        except (ConfigError, OSError) as bad:
            _log.error("can't start", why=str(bad))
            raise SystemExit(1) from bad

    def _serve(self) -> None:
        _allow_descriptors()
        sys.setswitchinterval(SWITCH_S)
        doormen = {name: self._doorman(name, served) for name, served in self._served.items()}
        self._begin({name: doorman.address for name, doorman in doormen.items()})
        for doorman in doormen.values():
            doorman.start()
        for begin in iter(self._begun.get, None):
            begin()
        self._ending()
        closing = {*doormen}
        for name, doorman in doormen.items():
            self._threads.once(f"close {name}", partial(self._close, doorman, partial(closing.discard, name)))
        while closing:
            due = self._begun.get()  # what was let in at the last moment; None: asked to end again
            if due is not None:
                due()
        self._end()

    def _close(self, doorman: Doorman, closed: Callable[[], None]) -> None:
        try:
            doorman.close(self._grace_s)
        finally:
            self._begun.put(closed)

    def _doorman(self, name: str, served: Served) -> Doorman:
        return Doorman(
            name, _listening(served.address), served.port.serve, tls=served.tls, certified=served.certified,
            begin=self._begun.put, refusals=self._refusals, threads=self._threads,
        )  # fmt: skip

    def _heed(self, signals: socket.socket) -> None:
        """Whichever thread the kernel hands a signal to: a handler runs on the main one, which nothing wakes for it
        where another got the signal, or where it came just before the wait.
        """
        while True:
            select.select([signals], [], [])
            self._grace_s = min(GRACE_S[signal.Signals(number)] for number in signals.recv(64))
            self._begun.put(None)


def _allow_descriptors() -> None:
    """As many as the system lets us have: each connection takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listening(address: str) -> socket.socket:
    listening = _bound(*host_and_port("listen", address))
    listening.listen(BACKLOG)
    return listening


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(both_families(host), port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        take_both(bound)
        bound.bind(where)
    except OSError:
        bound.close()
        raise
    return bound
