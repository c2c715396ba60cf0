"""A hostile pod: sockets from an address of its own, which keep no rule that they can break."""

from __future__ import annotations

import resource
import select
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.standins.patience import PATIENCE_S

HALF_A_BODY = b"POST /prioritize HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"


def memory(pid: int) -> int:
    """The most bytes that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def allow_descriptors() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class HostilePod:
    """target: HOST:PORT of a port on this machine. address: from 127.0.0.0/8, another one than the victim's."""

    def __init__(self, target: str, address: str = "127.0.0.66") -> None:
        host, _, port = target.rpartition(":")
        self._target, self._address = (host, int(port)), address
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self.sockets:
            each.close()

    def connect(self, first: bytes = b"") -> socket.socket:
        made = socket.create_connection(self._target, PATIENCE_S, (self._address, 0))
        self.sockets.append(made)
        with suppress(OSError):  # cut off at once
            made.sendall(first)
        return made

    def hold(self, count: int, first: bytes) -> None:
        for _ in range(count):
            self.connect(first)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body of an answer; (0, b"") where the connection was cut off."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        try:
            made = self.connect("\r\n".join([*lines, "", ""]).encode() + body)
            answer = b"".join(iter(lambda: made.recv(65536), b""))
        except (OSError, ssl.SSLError):
            return 0, b""
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, content


def readable(connection: socket.socket) -> bool:
    """Whether something came, or the other side has ended it."""
    return bool(select.select([connection], [], [], 0)[0])


def cut_off(connection: socket.socket) -> bytes:
    """Waits for the other side's end of the connection; what came before it."""
    with suppress(ConnectionError):
        return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""
