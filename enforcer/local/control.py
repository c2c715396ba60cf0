"""The hook's own socket: `RUN_DIR/hook.sock`, for the observer and for people's questions.

Messages are length-prefixed protobuf (proto/local.proto). The hook never waits for a reader: what a connection does
not take is kept up to a bound; over it the connection is closed, and its reader starts again with a whole report.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from google.protobuf.message import DecodeError

from numakin.process.log import Log
from numakin.process.loop import Loop
from numakin.wire import local_pb2 as local

MOST_UNSENT = 8 << 20
"""Bytes kept for a reader that does not read: several whole reports of a full node."""

LARGEST_MESSAGE = 4 << 20
"""The longest message taken from the socket, in bytes."""

MOST_CONNECTIONS = 8
"""Over that one that is there makes room, so that readers which hang never keep the observer from coming back."""

PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOENT, errno.EIO, errno.EMFILE, errno.ENFILE})
"""Errors over a socket's file that may pass: containers are pinned meanwhile."""

log = Log("hook.control")


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


class LocalConnection:
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
    """Accepts readers, hands on what they send, sends to all who observe."""

    def __init__(self, path: Path, loop: Loop, received: Callable[[LocalConnection, local.ToHook], None]) -> None:
        """OSError when there can be no such socket at all; where there is no room for it now, `keep` tries again."""
        self._path, self._loop, self._received = path, loop, received
        self._connections: list[LocalConnection] = []
        self._listener: socket.socket | None = None
        self._inode = 0
        self._failure = ""
        try:
            self._open()
        except OSError as error:
            if error.errno not in PASSING:
                raise
            self._failed(error)

    def keep(self) -> None:
        """To be called now and then: the socket's file may be deleted, and its file system full."""
        if self._listener is not None and self._there():
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            self._failed(error)
            return
        self._failure = ""
        log.warning("the hook's socket was not there, and is made anew", path=self._path)

    def _open(self) -> None:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            self._path.chmod(0o600)
            listener.listen(MOST_CONNECTIONS)
            listener.setblocking(False)
            self._inode = self._path.lstat().st_ino
        except OSError:
            listener.close()
            raise
        self._close_listener()
        self._listener = listener
        self._loop.register(listener.fileno(), partial(self._accept, listener))

    def _there(self) -> bool:
        try:
            return self._path.lstat().st_ino == self._inode
        except OSError:
            return False

    def _failed(self, error: OSError) -> None:
        """Logged once for each reason."""
        if str(error) != self._failure:
            log.error("the hook cannot be reached: no socket", path=self._path, error=error)
        self._failure = str(error)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._loop.unregister(self._listener.fileno())
            self._listener.close()
            self._listener = None

    @property
    def observers(self) -> list[LocalConnection]:
        return [connection for connection in self._connections if connection.observing]

    @property
    def unsent(self) -> bool:
        return any(connection.unsent for connection in self._connections)

    def broadcast(self, message: local.FromHook) -> None:
        for observer in self.observers:
            if not observer.send(message):
                log.warning("a reader was dropped: it does not read or has gone")
                self.drop(observer)

    def flush(self) -> None:
        for connection in list(self._connections):
            if connection.unsent and not connection.flush():
                self.drop(connection)

    def drop(self, connection: LocalConnection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._loop.unregister(connection.sock.fileno())
            connection.sock.close()

    def close(self) -> None:
        for connection in list(self._connections):
            self.drop(connection)
        if self._there():
            self._path.unlink(missing_ok=True)
        self._close_listener()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the peer is gone, or no descriptor is left for one more
            sock, _ = listener.accept()
            if len(self._connections) >= MOST_CONNECTIONS:
                self._drop_oldest()
            sock.setblocking(False)
            connection = LocalConnection(sock)
            self._connections.append(connection)
            self._loop.register(sock.fileno(), lambda: self._readable(connection))

    def _drop_oldest(self) -> None:
        """Of those that only ask, as long as there is one: they have their answers in milliseconds, or hang."""
        log.warning("a reader was dropped: too many are connected", most=MOST_CONNECTIONS)
        asking = (connection for connection in self._connections if not connection.observing)
        self.drop(next(asking, self._connections[0]))

    def _readable(self, connection: LocalConnection) -> None:
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
            try:
                self._received(connection, message)
            except Exception:
                log.exception("a message could not be handled", kind=message.WhichOneof("message"))
            if len(connection.unsent) > MOST_UNSENT:
                log.warning("a reader was dropped: it asks, and does not read the answers")
                self.drop(connection)
                return
        if not data:
            self.drop(connection)
