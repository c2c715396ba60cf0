"""A connection that was let in."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, slots=True)
class Connection:
    """socket: blocking. peer: the client's address. certificate: its client's, as `ssl.SSLSocket.getpeercert` has it;
    empty without one.
    """

    socket: socket.socket
    peer: str
    certificate: Mapping[str, Any]

    @property
    def secure(self) -> bool:
        return isinstance(self.socket, ssl.SSLSocket)

    def end_requests(self) -> None:
        """No more are read; what is being answered is sent. From any thread."""
        self._shut_down(socket.SHUT_RD)

    def cut_off(self) -> None:
        """As if its peer had ended it. From any thread."""
        self._shut_down(socket.SHUT_RDWR)

    def _shut_down(self, how: int) -> None:
        with suppress(OSError):
            # SSLSocket's own would take the encryption from under the thread that writes.
            socket.socket.shutdown(self.socket, how)
