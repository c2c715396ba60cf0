"""A TCP proxy that fails as networks do: between an enforcer and the extender."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from enum import Enum
from types import TracebackType
from typing import Self

CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: close() sends RST."""


class Mode(Enum):
    """pass: as if it were not there. stall: connections stay open and nothing is forwarded. half_open: the far end is
    gone and this one is never told. refuse: new connections are reset at once.
    """

    PASS = "pass"
    STALL = "stall"
    HALF_OPEN = "half-open"
    REFUSE = "refuse"


class Proxy:
    """A context manager. to: HOST:PORT, which may have nobody yet."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._wake, self._woken = socket.socketpair()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lost: list[socket.socket] = []
        self._mode = Mode.PASS
        self._reset = False
        self._thread = threading.Thread(target=self._run, name="soak-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.close()
        self._thread.join()

    def mode(self, mode: Mode) -> None:
        """From now on; back to PASS, connections that were half open are reset."""
        self._mode = mode
        self._wake.send(b"m")

    def reset(self) -> None:
        """Every connection now ends with RST at both ends."""
        self._wake.send(b"r")

    def _run(self) -> None:
        while True:
            stalled = self._mode is Mode.STALL
            watched = [self._woken, self._listener, *([] if stalled else self._pairs)]
            for ready in select.select(watched, [], [])[0]:
                if ready is self._woken:
                    orders = ready.recv(CHUNK)
                    if not orders:
                        self._close()
                        return
                    self._ordered(reset=b"r" in orders)
                    break  # what is watched may have changed
                if ready is self._listener:
                    self._accept()
                elif ready in self._pairs:
                    self._forward(ready)

    def _ordered(self, *, reset: bool) -> None:
        if reset:
            for end in list(self._pairs):
                self._end(end, with_reset=True)
        if self._mode is Mode.HALF_OPEN:
            for near, far in self._near():
                for end in (near, far):
                    del self._pairs[end]
                far.close()
                self._lost.append(near)
        if self._mode is Mode.PASS:
            for near in self._lost:
                _close(near, with_reset=True)
            self._lost.clear()

    def _near(self) -> list[tuple[socket.socket, socket.socket]]:
        port = self._listener.getsockname()[1]
        return [(near, far) for near, far in self._pairs.items() if near.getsockname()[1] == port]

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        if self._mode is Mode.REFUSE:
            _close(near, with_reset=True)
            return
        if self._mode is Mode.HALF_OPEN:
            self._lost.append(near)
            return
        try:
            far = socket.create_connection(self._to, timeout=5)
        except OSError:
            _close(near, with_reset=True)
            return
        for end in (near, far):
            end.settimeout(5)
        self._pairs[near], self._pairs[far] = far, near

    def _forward(self, end: socket.socket) -> None:
        try:
            data = end.recv(CHUNK)
            if data:
                self._pairs[end].sendall(data)
                return
        except OSError:
            pass
        self._end(end, with_reset=False)

    def _end(self, end: socket.socket, *, with_reset: bool) -> None:
        other = self._pairs.pop(end, None)
        if other is not None:
            del self._pairs[other]
            _close(end, with_reset=with_reset)
            _close(other, with_reset=with_reset)

    def _close(self) -> None:
        for end in [*self._pairs, *self._lost, self._listener, self._woken]:
            end.close()


def _close(end: socket.socket, *, with_reset: bool) -> None:
    if with_reset:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    end.close()
