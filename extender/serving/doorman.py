"""The door of one port: accepts connections within limits, shakes hands, and lets in those that may come in.

One thread does that for a whole crowd and never waits for a peer. It is of low priority, so that a crowd takes the
processor from no other; a connection that was let in gets a thread of its own, which does not inherit that, since the
main thread starts it.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.places import Places
from extender.serving.refusals import LimitRefusals
from numakin.process.listening import plain
from numakin.process.log import Log
from numakin.process.threads import Thread, Threads
from numakin.wire.certificates import Renewed

NICE = 10
"""Of the thread that shakes hands."""

ACCEPTED_AT_ONCE = 16
"""Connections taken from a full backlog before handshakes go on."""

SHORTAGE_S = 0.1
"""Wait after an accept that failed, as where no descriptor is left."""

ROUND_S = 0.5
"""The longest that a round waits: so late a deadline may be seen."""

DISTRUSTED = "the caller does not trust our certificate: its CA file is old or another's, or it expects another name"
UNCERTIFIED = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the caller shows no certificate",
    "CERTIFICATE_VERIFY_FAILED": "the caller's certificate is of another CA, or out of date",
    "TLSV1_ALERT_UNKNOWN_CA": DISTRUSTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": DISTRUSTED,  # as Go's clients say it
    "HTTP_REQUEST": "the caller speaks HTTP without TLS",
}
"""What is wrong with a caller, by OpenSSL's reason; told where callers must show a certificate. kube-scheduler's own
log has no word of it unless it runs with --v=5.
"""

_log = Log("serving")


@dataclass(eq=False, slots=True)
class _Newcomer:
    """One that was accepted. descriptor: of its socket, also where a handshake that can't begin has taken that away.
    until: by time.monotonic, when its time is over.
    """

    socket: socket.socket
    descriptor: int
    peer: str
    until: float


class Doorman:
    """listening: bound and listening. tls: asked for its certificates at each handshake; None: plain HTTP. certified:
    whether who shows this certificate may come in. serve: answers a connection until it ends, on its own thread.
    begin: calls what it is given soon, on a thread of common priority.
    """

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        serve: Callable[[Connection], None],
        *,
        tls: Renewed | None = None,
        certified: Callable[[Mapping[str, Any]], bool] = lambda _certificate: True,
        begin: Callable[[Callable[[], None]], None],
        refusals: LimitRefusals,
        threads: Threads,
    ) -> None:
        self._name, self._listening, self._serve = name, listening, serve
        self._tls, self._certified, self._begin = tls, certified, begin
        self._refusals, self._threads = refusals, threads
        self._waiting: Places[_Newcomer] = Places(limits.WAITING)
        self._in_order: dict[_Newcomer, None] = {}
        self._inside: Places[Connection] = Places(limits.CONNECTIONS)
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ)
        self._lowered = False
        self._thread: Thread = threads.thread(f"door {name}", self._round, last=self._leave, essential=True)

    @property
    def address(self) -> str:
        host, port = self._listening.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self, within_s: float) -> None:
        """Lets no more in, and waits so long for the answers under way."""
        self._thread.stop()
        with suppress(OSError):  # not connected, says Linux, and wakes the thread
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.stop(2 * ROUND_S)
        with self._changed:
            for connection in self._inside.all():
                connection.end_requests()
            self._changed.wait_for(lambda: not len(self._inside), within_s)
            for connection in self._inside.all():
                connection.cut_off()

    def _round(self) -> None:
        if not self._lowered:
            self._lowered = True
            with suppress(OSError):  # a seccomp profile may forbid it
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        for key, _ in self._selector.select(ROUND_S):
            if key.data is None:
                self._accept()
            elif key.data in self._in_order:  # or it gave its place up in this round
                self._go_on(key.data)
        self._cut_off_late()

    def _leave(self) -> None:
        self._listening.close()
        for waiting in list(self._in_order):
            self._drop(waiting)
        self._selector.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError:
                if not self._thread.stopping.wait(SHORTAGE_S):
                    self._refusals.over("descriptors", "")
                return
            self._admit(accepted, plain(str(address[0])))

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        with self._changed:
            own = self._waiting.of(peer) + self._inside.of(peer)
        if own >= limits.CONNECTIONS_PER_PEER:
            self._refusals.over("connections_per_peer", peer)
            accepted.close()
            return
        if self._waiting.full:
            self._refusals.over("waiting", peer)
            other = self._waiting.in_the_way(peer)
            if other is None:
                accepted.close()
                return
            self._drop(other)
        accepted.setblocking(False)
        waiting = _Newcomer(accepted, accepted.fileno(), peer, time.monotonic() + limits.HANDSHAKE_S)
        self._waiting.add(waiting)
        self._in_order[waiting] = None
        self._selector.register(waiting.descriptor, selectors.EVENT_READ, waiting)

    def _go_on(self, waiting: _Newcomer) -> None:
        """Something came of it. Only from now on a connection with TLS is more than a socket."""
        try:
            if self._tls is not None:
                self._shake_hands(waiting, self._tls)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except (OSError, ValueError) as bad:
            why = UNCERTIFIED.get(getattr(bad, "reason", ""))
            if why and isinstance(waiting.socket, ssl.SSLSocket) and waiting.socket.context.verify_mode:
                self._refusals.over("certificate", waiting.peer, why)
            self._drop(waiting)
            return
        self._let_in(waiting)

    @staticmethod
    def _shake_hands(waiting: _Newcomer, tls: Renewed) -> None:
        if not isinstance(waiting.socket, ssl.SSLSocket):
            context = tls.current().context
            waiting.socket = context.wrap_socket(waiting.socket, server_side=True, do_handshake_on_connect=False)
        waiting.socket.do_handshake()

    def _let_in(self, waiting: _Newcomer) -> None:
        self._forget(waiting)
        certificate = (waiting.socket.getpeercert() or {}) if isinstance(waiting.socket, ssl.SSLSocket) else {}
        if not self._certified(certificate):
            self._refusals.over("certificate", waiting.peer, "the caller's certificate is not kube-scheduler's")
            waiting.socket.close()
            return
        waiting.socket.setblocking(True)
        connection = Connection(waiting.socket, waiting.peer, certificate)
        with self._changed:
            if self._inside.full and not self._made_room(waiting.peer):
                waiting.socket.close()
                return
            self._inside.add(connection)
        self._begin(partial(self._begin_visit, connection))

    def _made_room(self, peer: str) -> bool:
        self._refusals.over("connections", peer)
        other = self._inside.in_the_way(peer)
        if other is None:
            return False
        self._inside.remove(other)
        other.cut_off()
        return True

    def _begin_visit(self, connection: Connection) -> None:
        try:
            self._threads.once(self._name, partial(self._visit, connection))
        except RuntimeError:  # no memory for it, or too many
            self._refusals.over("threads", connection.peer)
            connection.socket.close()
            self._ended(connection)

    def _visit(self, connection: Connection) -> None:
        try:
            with connection.socket:
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._serve(connection)
        except OSError:
            pass  # its peer has ended it
        except Exception:  # noqa: BLE001 - it costs one connection
            _log.exception("a connection failed", port=self._name, peer=connection.peer)
        finally:
            self._ended(connection)

    def _ended(self, connection: Connection) -> None:
        with self._changed:
            self._inside.remove(connection)
            self._changed.notify_all()

    def _cut_off_late(self) -> None:
        now = time.monotonic()
        while self._in_order and (oldest := next(iter(self._in_order))).until < now:
            self._refusals.over("handshake_s", oldest.peer)
            self._drop(oldest)

    def _drop(self, waiting: _Newcomer) -> None:
        self._forget(waiting)
        waiting.socket.close()

    def _forget(self, waiting: _Newcomer) -> None:
        self._selector.unregister(waiting.descriptor)
        self._waiting.remove(waiting)
        del self._in_order[waiting]
