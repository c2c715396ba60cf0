"""A connection that was accepted and not looked at yet: until its first bytes are there, a socket and a deadline."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

TCP_ESTABLISHED = 1
"""The first byte of TCP_INFO (linux/tcp.h, tcp_states.h)."""


class Waiting:
    """accepted: its socket. peer: the client's address. ready: told of it when there is something to read, and takes
    the socket or cuts it off. late: told of it after `within_s` seconds, and cuts it off. gone: told when it was.
    """

    rank = 0
    waits = True

    def __init__(
        self,
        accepted: socket.socket,
        peer: str,
        *,
        ready: Callable[[Waiting], None],
        late: Callable[[Waiting], None],
        gone: Callable[[Waiting], None],
        within_s: float,
    ) -> None:
        self.peer, self._accepted, self._gone = peer, accepted, gone
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(accepted.fileno(), ready, self)
        self._deadline = self._loop.call_later(within_s, late, self)

    def left_by_peer(self) -> bool:
        """Whether the peer has closed it, whatever it sent before: nobody reads the answer."""
        return self._accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_ESTABLISHED

    def taken(self) -> socket.socket:
        self._loop.remove_reader(self._accepted.fileno())
        self._deadline.cancel()
        return self._accepted

    def cut_off(self) -> None:
        self.taken().close()
        self._gone(self)
