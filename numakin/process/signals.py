"""Signals as bytes on a socket, how a process with a loop ends by one, and how it shows its supervisor that it lives.
Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Collection
from functools import partial

from numakin.process.loop import Loop
from numakin.process.pulse import BEAT_S, beat


def received(numbers: Collection[signal.Signals]) -> socket.socket:
    """A socket that does not block, on which the number of each of these signals arrives as a byte from now on.

    Both ends stay open as long as the process, whoever closes the socket: the kernel may hand a signal over at any
    time, as to one that is ending and is told so again, and Python complains on stderr of a pipe that nobody reads.
    """
    written, read = socket.socketpair()
    for end in (written, read):
        end.setblocking(False)
    os.dup(read.fileno())
    signal.set_wakeup_fd(written.detach(), warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    return read


def stop_on_signals(loop: Loop) -> socket.socket:
    """SIGTERM and SIGINT end the loop between two callbacks; one that comes before the loop runs ends its first round.
    The caller keeps the socket, and closes it after the loop has ended.
    """
    signals = received((signal.SIGTERM, signal.SIGINT))

    def stop() -> None:
        signals.recv(64)
        loop.stop()

    loop.register(signals.fileno(), stop)
    return signals


def beating(loop: Loop) -> None:
    """From now on, as long as the loop turns."""
    beat(os.environ)
    loop.call_later(BEAT_S, partial(beating, loop))
