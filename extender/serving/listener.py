"""One port: accepts connections within the limits, shakes hands, and hands them to uvicorn's protocol."""

from __future__ import annotations

import asyncio
import itertools
import socket
import traceback
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from ssl import SSLError

from uvicorn import Config
from uvicorn.server import ServerState

from extender.scheduler.calls import CallAnswer
from extender.serving import limits
from extender.serving.connection import KNOWN, STRANGERS, Connection
from extender.serving.refusals import LimitRefusals
from extender.serving.selector import FairSelector
from extender.serving.waiting import Waiting
from numakin.wire.certificates import Renewed

SHORTAGE_S = 0.1
"""Wait after an accept that failed, as where no descriptor is left."""

ACCEPTED_AT_ONCE, BREATH_S = 16, 0.002
"""Connections taken from a full backlog before the loop's other work goes on for so long: 8,000 in a second at most."""

SSLProtocol.max_size = limits.TLS_READ_BYTES  # asyncio has no other way to say it


class Listener:
    """listening: bound and listening. tls: asked for its certificates at each new connection; None: plain HTTP.
    selector: the loop's. at_once: as `Connection` has it.
    """

    def __init__(
        self,
        listening: socket.socket,
        config: Config,
        tls: Renewed | None,
        refusals: LimitRefusals,
        selector: FairSelector,
        *,
        at_once: Callable[[Connection, str, bytes], CallAnswer | None],
    ) -> None:
        self._listening, self._config, self._tls, self._refusals = listening, config, tls, refusals
        self._selector, self._at_once = selector, at_once
        self._state = ServerState()
        self._open: dict[str, list[Waiting | Connection]] = {}
        self._held: set[asyncio.Task[None]] = set()
        self._count = 0
        listening.setblocking(False)

    async def serve(self) -> None:
        """Until it is cancelled."""
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError:
                self._refusals.over("descriptors", "")
                await asyncio.sleep(SHORTAGE_S)
                continue
            self._admit(accepted, str(address[0]))
            if number % ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(BREATH_S)

    async def close(self, within_s: float) -> None:
        """Takes no more connections, closes the idle ones, and waits for the answers under way."""
        self._listening.close()
        left = [each for of_peer in self._open.values() for each in of_peer]
        for each in left:
            if isinstance(each, Connection) and each in self._state.connections:
                each.shutdown()
            else:
                each.cut_off()
        if self._held:
            await asyncio.wait(self._held, timeout=within_s)
        for each in left:
            if isinstance(each, Connection):
                each.abort()

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        if len(self._open.get(peer, ())) >= limits.CONNECTIONS_PER_PEER:
            self._refusals.over("connections_per_peer", peer)
            accepted.close()
            return
        if self._count >= limits.CONNECTIONS and not self._made_room(peer):
            accepted.close()
            return
        self._selector.distrust(accepted.fileno(), peer)
        within_s = limits.HEADER_S if self._tls is None else limits.HANDSHAKE_S
        self._add(Waiting(accepted, peer, ready=self._begin, late=self._late, gone=self._remove, within_s=within_s))

    def _made_room(self, peer: str) -> bool:
        """Cuts off one that waits, of the client address that has most: a stranger's, or where there is none a known
        one's. False where all other addresses have as few as this one, or no connection that waits.
        """
        self._refusals.over("connections", peer)
        own = len(self._open.get(peer, ()))
        most_first = sorted((each for each in self._open.values() if len(each) > own), key=len, reverse=True)
        for ranks in STRANGERS, KNOWN:
            for of_peer in most_first:
                waiting = [each for each in of_peer if each.waits and each.rank in ranks]
                if waiting:
                    min(waiting, key=lambda each: each.rank).cut_off()
                    return True
        return False

    def _late(self, waiting: Waiting) -> None:
        self._refusals.over("header_s" if self._tls is None else "handshake_s", waiting.peer)
        waiting.cut_off()

    def _begin(self, waiting: Waiting) -> None:
        if waiting.left_by_peer():
            waiting.cut_off()
            return
        self._remove(waiting)
        accepted = waiting.taken()

        def known() -> None:
            self._selector.trust(accepted.fileno())

        connection = Connection(
            self._config, self._state, accepted, waiting.peer, self._refusals, known=known, at_once=self._at_once
        )
        self._add(connection)
        task = asyncio.get_running_loop().create_task(self._hold(connection))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    def _add(self, each: Waiting | Connection) -> None:
        self._open.setdefault(each.peer, []).append(each)
        self._count += 1

    def _remove(self, each: Waiting | Connection) -> None:
        of_peer = self._open[each.peer]
        of_peer.remove(each)
        self._count -= 1
        if not of_peer:
            del self._open[each.peer]

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
            # Its frames hold what holds it: the collector would have to find that, for each connection that fails.
            traceback.clear_frames(failed.__traceback__)
        finally:
            connection.app_state.clear()
            self._remove(connection)
