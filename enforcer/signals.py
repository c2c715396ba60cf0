"""How a process with a loop ends: by a signal, between two callbacks. Standard library only."""

from __future__ import annotations

import signal
import socket

from enforcer.nri.socket_loop import Loop


def stop_on_signals(loop: Loop) -> tuple[socket.socket, socket.socket]:
    """A signal ends the loop's wait by a byte on a pair of sockets, which the caller keeps."""
    told, heard = socket.socketpair()
    for one in (told, heard):
        one.setblocking(False)
    signal.set_wakeup_fd(told.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())

    def drain() -> None:
        heard.recv(64)

    loop.register(heard.fileno(), drain)
    return told, heard
