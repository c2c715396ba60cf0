"""The observer's connection to the hook: a thread reads it, and dials again whenever it ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

from enforcer.local import control
from numakin.process.log import Log
from numakin.process.threads import IDLE_S, Threaded, Threads
from numakin.wire import local_pb2 as local

log = Log("observer")

REDIAL_S = 0.2
"""Wait between two tries to reach the hook, which is local and starts in a tenth of that."""


class HookLink(Threaded):
    """received: called with every message of the hook. lost: called at each connection's end. Both on the link's
    thread."""

    def __init__(
        self,
        path: Path,
        received: Callable[[local.FromHook], None],
        lost: Callable[[], None],
        threads: Threads,
    ) -> None:
        self._path, self._received, self._lost = path, received, lost
        self._sock: socket.socket | None = None
        self._sending = threading.Lock()
        self._thread = threads.thread("hook", self._round, wake=self._break)

    def send(self, message: local.ToHook) -> None:
        """Lost without harm when the hook is away: the extender sends nominations again when the node comes back."""
        with self._sending:
            sock = self._sock
            if sock is None:
                return
            try:
                sock.sendall(control.framed(message))
            except OSError as error:
                log.warning("the hook did not take a message", error=error)
                # It may have gone out by half.
                self._break()

    def _round(self) -> None:
        """One connection, for as long as it lasts."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(IDLE_S)
                sock.connect(str(self._path))
                self._sock = sock
                if not self._thread.stopping.is_set():
                    self.send(local.ToHook(who=local.Who(role="observer")))
                    self._read(sock)
        except OSError as error:
            log.debug("the hook is not there", path=self._path, error=error)
        finally:
            self._sock = None
            self._lost()
        self._thread.stopping.wait(REDIAL_S)

    def _read(self, sock: socket.socket) -> None:
        buffer = bytearray()
        while not self._thread.stopping.is_set():
            try:
                data = sock.recv(1 << 18)
            except TimeoutError:  # the hook had nothing to say
                self._thread.progress()
                continue
            if not data:
                return
            buffer += data
            del data
            self._hand_on(control.taken(buffer))
            self._thread.progress()

    def _hand_on(self, messages: list[bytes]) -> None:
        """Not in `_read`, which would keep the last one, maybe a MiB, while it waits for the next."""
        for message in messages:
            self._received(local.FromHook.FromString(message))

    def _break(self) -> None:
        sock = self._sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError as error:
                log.debug("the hook has gone", error=error)
