"""One port: accepts connections within the limits, shakes hands, and hands them to uvicorn's protocol."""

from __future__ import annotations

import asyncio
import socket
from asyncio.sslproto import SSLProtocol
from collections import Counter
from ssl import SSLError

from uvicorn import Config
from uvicorn.server import ServerState

from extender.serving import limits
from extender.serving.connection import RANKS, Connection
from extender.serving.refusals import LimitRefusals
from proto.certificates import Renewed

SHORTAGE_S = 0.1
"""Wait after an accept that failed, as where no descriptor is left."""


SSLProtocol.max_size = limits.TLS_READ_BYTES  # asyncio has no other way to say it


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
                connection.cut_off()
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
        connection = Connection(self._config, self._state, accepted, peer, self._refusals)
        task = asyncio.get_running_loop().create_task(self._hold(connection))
        self._open[task] = connection
        self._peers[peer] += 1
        task.add_done_callback(self._forget)

    def _made_room(self, peer: str) -> bool:
        """Cuts off the longest open connection without a request, of those that are known least. False where all have
        one.
        """
        self._refusals.over("connections", peer)
        for rank in RANKS:
            for connection in self._open.values():
                if connection.waits and connection.rank == rank:
                    connection.cut_off()
                    return True
        return False

    def _forget(self, task: asyncio.Task[None]) -> None:
        connection = self._open.pop(task)
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]

    async def _hold(self, connection: Connection) -> None:
        """For as long as the connection lasts. Once asyncio has the socket, it alone closes it."""
        loop = asyncio.get_running_loop()
        context = self._tls.current().context if self._tls is not None else None
        deadline = limits.HANDSHAKE_S if context is not None else None
        try:
            connection.accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(
                lambda: connection, connection.accepted, ssl=context, ssl_handshake_timeout=deadline
            )
            await connection.closed
        except (SSLError, OSError) as failed:
            if isinstance(failed, ConnectionAbortedError):
                self._refusals.over("handshake_s", connection.peer)
