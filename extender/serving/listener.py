"""One port: accepts connections within the limits, shakes hands, and hands them to uvicorn's protocol."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from ssl import SSLError

from uvicorn import Config
from uvicorn.server import ServerState

from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.refusals import LimitRefusals
from proto.certificates import Renewed

SHORTAGE_S = 0.1
"""Wait after an accept that failed, as where no descriptor is left."""


class Listener:
    """listening: bound and listening. tls: asked for its certificates at each new connection; None: plain HTTP."""

    def __init__(self, listening: socket.socket, config: Config, tls: Renewed | None, refusals: LimitRefusals) -> None:
        self._listening, self._config, self._tls, self._refusals = listening, config, tls, refusals
        self._state = ServerState()
        self._open: dict[asyncio.Task[None], Connection] = {}
        self._peers: Counter[str] = Counter()
        listening.setblocking(False)

    async def serve(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError:
                self._refusals.over("descriptors", "")
                await asyncio.sleep(SHORTAGE_S)
                continue
            self._admit(accepted, str(address[0]))
            # A full backlog must not keep the loop from the connections that are there.
            await asyncio.sleep(0)

    async def close(self, within_s: float) -> None:
        """Takes no more connections, closes the idle ones, and waits for the answers under way."""
        self._listening.close()
        for connection in list(self._open.values()):
            if connection in self._state.connections:
                connection.shutdown()
            else:
                connection.abort()
        if self._open:
            await asyncio.wait(list(self._open), timeout=within_s)
        for connection in list(self._open.values()):
            connection.abort()

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        if self._peers[peer] >= limits.CONNECTIONS_PER_PEER:
            self._refusals.over("connections_per_peer", peer)
            accepted.close()
            return
        if len(self._open) >= limits.CONNECTIONS and not self._made_room(peer):
            accepted.close()
            return
        connection = Connection(self._config, self._state, peer, self._refusals)
        task = asyncio.get_running_loop().create_task(self._hold(accepted, connection))
        self._open[task] = connection
        self._peers[peer] += 1
        task.add_done_callback(self._forget)

    def _made_room(self, peer: str) -> bool:
        """Cuts off the longest open connection without a request: of those never answered, else of the others, and one
        with a certificate last. False where all have a request.
        """
        self._refusals.over("connections", peer)
        waiting = [(task, connection) for task, connection in self._open.items() if connection.waits]
        if not waiting:
            return False
        task, _ = min(waiting, key=lambda entry: (bool(entry[1].identity), entry[1].answered))
        task.cancel()
        return True

    def _forget(self, task: asyncio.Task[None]) -> None:
        connection = self._open.pop(task)
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]

    async def _hold(self, accepted: socket.socket, connection: Connection) -> None:
        """For as long as the connection lasts."""
        loop = asyncio.get_running_loop()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = self._tls.current().context if self._tls is not None else None
        deadline = limits.HANDSHAKE_S if context is not None else None
        try:
            await loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=context, ssl_handshake_timeout=deadline
            )
            await connection.closed
        except (SSLError, OSError) as failed:
            if isinstance(failed, ConnectionAbortedError):
                self._refusals.over("handshake_s", connection.peer)
        finally:
            connection.abort()
            with suppress(OSError):
                accepted.close()
