"""How a process with a loop ends, by a signal between two callbacks, and shows its supervisor that it lives. Standard
library only.
"""

from __future__ import annotations

import os
import signal
import socket
from functools import partial

from process.loop import Loop
from process.pulse import BEAT_S, beat


def stop_on_signals(loop: Loop) -> tuple[socket.socket, socket.socket]:
    """A signal ends the loop by a byte on a pair of sockets, which the caller keeps; one that comes before the loop
    runs ends its first round.
    """
    written, received = socket.socketpair()
    for end in (written, received):
        end.setblocking(False)
    signal.set_wakeup_fd(written.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def stop() -> None:
        received.recv(64)
        loop.stop()

    loop.register(received.fileno(), stop)
    return written, received


def beating(loop: Loop) -> None:
    """From now on, as long as the loop turns."""
    beat(os.environ)
    loop.call_later(BEAT_S, partial(beating, loop))
