"""A TCP proxy that fails as networks do: between an enforcer and the extender."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque
from enum import Enum
from random import Random
from types import TracebackType
from typing import Self

CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: close() sends RST."""


PIECE = 1400
"""Bytes that are delayed together at most: a packet's."""

DELAY_S = 0.5
"""Of a piece at most, each with its own: what was sent later on another connection, or the other way, comes first."""


class Mode(Enum):
    """pass: as if it were not there. stall: connections stay open and nothing is forwarded; forth and back: nothing but
    this way. delay: small pieces, each after a time of its own; those of one way of one connection stay in order, as by
    TCP. half_open: the far end is gone and this one is never told. refuse: new connections are reset at once.
    """

    PASS = "pass"
    STALL = "stall"
    FORTH = "nothing comes back"
    BACK = "nothing goes forth"
    DELAY = "delay"
    HALF_OPEN = "half-open"
    REFUSE = "refuse"


class Proxy:
    """A context manager. to: HOST:PORT, which may have nobody yet. listener: takes the connections; it is closed at the end."""

    def __init__(self, to: str, listener: socket.socket | None = None) -> None:
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._wake, self._woken = socket.socketpair()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._ended: set[socket.socket] = set()
        self._late: dict[socket.socket, deque[tuple[float, bytes]]] = {}
        self._random = Random(self._listener.getsockname()[1])
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
            self._deliver()
            for ready in select.select([self._woken, self._listener, *self._read()], [], [], self._pause_s())[0]:
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

    def _read(self) -> list[socket.socket]:
        """The ends whose data is forwarded in this mode."""
        near = {end for end, _ in self._near()}
        stalled = {Mode.STALL: set(self._pairs), Mode.FORTH: set(self._pairs) - near, Mode.BACK: near}
        return [*(set(self._pairs) - self._ended - stalled.get(self._mode, set()))]

    def _ordered(self, *, reset: bool) -> None:
        if reset:
            for end in list(self._pairs):
                self._end(end, with_reset=True)
        if self._mode is Mode.HALF_OPEN:
            for near, far in self._near():
                for end in (near, far):
                    self._forget(end)
                far.close()
                self._lost.append(near)
        if self._mode is Mode.PASS:
            for near in self._lost:
                _close(near, with_reset=True)
            self._lost.clear()

    def _near(self) -> list[tuple[socket.socket, socket.socket]]:
        ours = self._listener.getsockname()
        return [(near, far) for near, far in self._pairs.items() if near.getsockname() == ours]

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
            data = end.recv(PIECE if self._mode is Mode.DELAY else CHUNK)
        except OSError:
            data = b""
        late = self._late.setdefault(end, deque())
        delay_s = self._random.uniform(0, DELAY_S) if self._mode is Mode.DELAY else 0.0
        late.append((max(time.monotonic() + delay_s, late[-1][0] if late else 0.0), data))
        if not data:
            self._ended.add(end)

    def _deliver(self) -> None:
        """What is due by now; an empty piece is the connection's end."""
        for end, late in list(self._late.items()):
            while end in self._pairs and late and late[0][0] <= time.monotonic():
                _, data = late.popleft()
                if not (data and self._sent(self._pairs[end], data)):
                    self._end(end, with_reset=False)

    @staticmethod
    def _sent(end: socket.socket, data: bytes) -> bool:
        try:
            end.sendall(data)
        except OSError:
            return False
        return True

    def _pause_s(self) -> float | None:
        """Until the next piece is due."""
        due = min((late[0][0] for late in self._late.values() if late), default=None)
        return None if due is None else max(0.0, due - time.monotonic())

    def _end(self, end: socket.socket, *, with_reset: bool) -> None:
        other = self._pairs.get(end)
        if other is not None:
            for each in (end, other):
                self._forget(each)
                _close(each, with_reset=with_reset)

    def _forget(self, end: socket.socket) -> None:
        del self._pairs[end]
        self._late.pop(end, None)
        self._ended.discard(end)

    def _close(self) -> None:
        for end in [*self._pairs, *self._lost, self._listener, self._woken]:
            end.close()


def _close(end: socket.socket, *, with_reset: bool) -> None:
    if with_reset:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    end.close()
