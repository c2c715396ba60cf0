"""The hook's own socket: `RUN_DIR/hook.sock`, for the observer and for people's questions.

Messages are length-prefixed protobuf (proto/local.proto). The hook never waits for a reader: what a connection does
not take is kept up to a bound; over it the connection is closed, and its reader starts again with a whole report.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from google.protobuf.message import DecodeError

from enforcer.log import Log
from proto import local_pb2 as local

MOST_UNSENT = 8 << 20
"""Bytes kept for a reader that does not read: several whole reports of a full node."""

LARGEST_MESSAGE = 4 << 20
"""The longest message taken from the socket, in bytes."""

MOST_CONNECTIONS = 8

log = Log("hook.control")


class Watcher(Protocol):
    """What the hook's loop offers: calls back when a descriptor can be read."""

    def register(self, fd: int, callback: Callable[[], None]) -> None: ...
    def unregister(self, fd: int) -> None: ...


def framed(message: local.FromHook | local.ToHook) -> bytes:
    body = message.SerializeToString()
    return len(body).to_bytes(4, "big") + body


def taken(buffer: bytearray) -> list[bytes]:
    """The whole messages at the buffer's start, removed from it; ValueError when a length is over the bound."""
    bodies = []
    while len(buffer) >= 4:
        length = int.from_bytes(buffer[:4], "big")
        if length > LARGEST_MESSAGE:
            raise ValueError(f"a message of {length} bytes is over the bound of {LARGEST_MESSAGE}")
        if len(buffer) < 4 + length:
            break
        bodies.append(bytes(buffer[4 : 4 + length]))
        del buffer[: 4 + length]
    return bodies


class Connection:
    """One reader of the hook. `observing` from its Who on."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.observing = False
        self.incoming = bytearray()
        self.unsent = bytearray()

    def send(self, message: local.FromHook) -> bool:
        """Whether the connection still lives."""
        self.unsent += framed(message)
        return self.flush()

    def flush(self) -> bool:
        try:
            while self.unsent:
                sent = self.sock.send(self.unsent[: 1 << 18])
                del self.unsent[:sent]
        except BlockingIOError:
            return len(self.unsent) <= MOST_UNSENT
        except OSError:
            return False
        return True


class Control:
    """Accepts readers, hands on what they say, sends to all who observe."""

    def __init__(self, path: Path, watcher: Watcher, heard: Callable[[Connection, local.ToHook], None]) -> None:
        path.unlink(missing_ok=True)
        self._path, self._watcher, self._heard = path, watcher, heard
        self._connections: list[Connection] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(MOST_CONNECTIONS)
        self._listener.setblocking(False)
        watcher.register(self._listener.fileno(), self._accept)

    @property
    def observers(self) -> list[Connection]:
        return [one for one in self._connections if one.observing]

    @property
    def unsent(self) -> bool:
        return any(one.unsent for one in self._connections)

    def tell(self, message: local.FromHook) -> None:
        for one in self.observers:
            if not one.send(message):
                log.warning("a reader was dropped: it does not read or has gone")
                self.drop(one)

    def flush(self) -> None:
        for one in list(self._connections):
            if one.unsent and not one.flush():
                self.drop(one)

    def drop(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._watcher.unregister(connection.sock.fileno())
            connection.sock.close()

    def close(self) -> None:
        for one in list(self._connections):
            self.drop(one)
        self._watcher.unregister(self._listener.fileno())
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = self._listener.accept()
            if len(self._connections) >= MOST_CONNECTIONS:
                log.warning("a reader was refused: too many are connected", most=MOST_CONNECTIONS)
                sock.close()
                return
            sock.setblocking(False)
            connection = Connection(sock)
            self._connections.append(connection)
            self._watcher.register(sock.fileno(), lambda: self._readable(connection))

    def _readable(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(1 << 18)
            connection.incoming += data
            messages = [local.ToHook.FromString(body) for body in taken(connection.incoming)]
        except BlockingIOError:
            return
        except (OSError, ValueError, DecodeError) as error:
            log.warning("a reader was dropped", error=error)
            self.drop(connection)
            return
        for message in messages:
            self._heard(connection, message)
        if not data:
            self.drop(connection)
