"""Network namespaces of the tests' own, each with one end of a link. They have no name: the kernel takes a namespace away
with its last process and descriptor, and a TUN device with its descriptor, so that nothing is left after a SIGKILL either.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TUN = Path("/dev/net/tun")
DEVICE = "scrambled"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
CLONE_NEWNET = 0x40000000  # linux/sched.h
HERE = "/proc/thread-self/ns/net"

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Namespace:
    """descriptor: of the namespace itself. address: its end's, by which the other end reaches it."""

    descriptor: int
    address: str

    @property
    def command(self) -> tuple[str, ...]:
        """Runs the command that follows it inside, with its own pid."""
        return ("nsenter", f"--net=/proc/{os.getpid()}/fd/{self.descriptor}")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread opens meanwhile belong to the namespace, and stay so."""
        before = os.open(HERE, os.O_RDONLY)
        try:
            _checked(_libc.setns(self.descriptor, CLONE_NEWNET))
            try:
                yield
            finally:
                _checked(_libc.setns(before, CLONE_NEWNET))
        finally:
            os.close(before)

    def tcp(self) -> dict[str, int]:
        """What its TCP has counted, as `nstat` names it without "Tcp" and "TcpExt"."""
        with self.entered():
            text = "".join(Path("/proc/thread-self/net", file).read_text() for file in ("snmp", "netstat"))
        rows = [line.split() for line in text.splitlines() if line.startswith(("Tcp:", "TcpExt:"))]
        return {
            key: int(value)
            for keys, values in zip(rows[::2], rows[1::2], strict=True)
            for key, value in zip(keys[1:], values[1:], strict=True)
        }


def made(address: str, peer: str) -> tuple[Namespace, int]:
    """A new one, and the descriptor that reads and writes the packets of its end of the link."""

    def make() -> tuple[Namespace, int]:
        _checked(_libc.unshare(CLONE_NEWNET))
        tun = _tun()
        _ip("link", "set", "lo", "up")
        _ip("address", "add", address, "peer", peer, "dev", DEVICE)
        _ip("link", "set", DEVICE, "up")
        return Namespace(os.open(HERE, os.O_RDONLY), address), tun

    return _apart(make)


@cache
def missing() -> str:
    """What this machine lacks for a link; empty: nothing."""
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    if not TUN.exists():
        return f"there is no {TUN}"

    def attempt() -> str:
        try:
            _checked(_libc.unshare(CLONE_NEWNET))
            os.close(_tun())
        except OSError as error:
            return f"no TUN device can be made in a namespace of its own: {error.strerror}"
        return ""

    return _apart(attempt)


def _apart(work: Callable[[], T]) -> T:
    """On a thread that ends with it: the others stay in the namespace that they are in."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _tun() -> int:
    tun = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(tun)
        raise
    return tun


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True)


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
