"""The two ways in which a plugin gets its socket: it dials the runtime, or the runtime launched it with one."""

import random
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from enforcer.nri.errors import UsageError
from enforcer.nri.identity import Identity

DEFAULT_PATH = "/var/run/nri/nri.sock"

# The runtime always reads and soon accepts, so to wait this long means that it hangs.
IO_TIMEOUT_S = 2.0

FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0


@dataclass(frozen=True, slots=True)
class External:
    """Dials the runtime's socket, and dials again whenever the connection ends."""

    path: str = DEFAULT_PATH
    reconnects: ClassVar[bool] = True

    def dial(self) -> socket.socket:
        """Raises OSError."""
        sock = _patient(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            sock.connect(self.path)
        except OSError:
            sock.close()
            raise
        return sock

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class Launched:
    """Takes the socket that the runtime left open for us. When it ends, so do we: the runtime has no other for us."""

    fd: int
    reconnects: ClassVar[bool] = False

    def dial(self) -> socket.socket:
        """Raises OSError."""
        return _patient(socket.socket(fileno=self.fd))

    def __str__(self) -> str:
        return f"file descriptor {self.fd}"


def _patient(sock: socket.socket) -> socket.socket:
    """With IO_TIMEOUT_S kept by the kernel: Python's own timeout costs a system call before each of ours. Where it is
    over, BlockingIOError is raised.
    """
    sock.setblocking(True)
    seconds, rest = divmod(IO_TIMEOUT_S, 1)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", int(seconds), int(rest * 1e6)))
    return sock


def launched_by_runtime(environ: Mapping[str, str]) -> tuple[Identity, Launched] | None:
    """What the runtime gave us in the environment if it launched us, else None. Raises UsageError.

    A launched plugin gets these three variables and nothing else: no PATH, no HOME, no arguments.
    """
    fd = environ.get("NRI_PLUGIN_SOCKET")
    if fd is None:
        return None
    if not (fd.isascii() and fd.isdigit()):
        raise UsageError(f"NRI_PLUGIN_SOCKET={fd!r}: must be the number of an open file descriptor")
    identity = Identity(environ.get("NRI_PLUGIN_IDX", ""), environ.get("NRI_PLUGIN_NAME", ""))
    return identity, Launched(int(fd))


def backoff(chance: Callable[[], float] = random.random) -> Iterator[float]:
    """Delays in seconds before each new try, doubling up to LONGEST_DELAY_S, each shortened by up to half by chance:
    so that a node's plugins do not all dial a restarted runtime at once. `chance()` is in [0, 1).
    """
    delay = FIRST_DELAY_S
    while True:
        yield delay * (1 - chance() / 2)
        delay = min(LONGEST_DELAY_S, delay * 2)
