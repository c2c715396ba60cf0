"""One connection's answers, and who does not take them."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.http_service import HttpService
from extender.serving.refusals import LimitRefusals
from extender.serving.wsgi import wsgi_answers
from lab.standins.patience import PATIENCE_S
from numakin.wire.certificates import Files, Renewed
from numakin.wire.verification import verifying
from tests.certificates import Authority, Mount, needed

RECORD = 16 << 10
"""Bytes; TLS has no larger ones."""

LARGE = 256 * RECORD
"""More than sockets take by themselves."""


def large(_environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", str(LARGE))])
    return [bytes(LARGE)]


def connection() -> tuple[socket.socket, socket.socket]:
    """Both ends of one that keeps little, so that each read lets some more be written."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECORD)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1_000)
        near.connect(listening.getsockname())
        far, _ = listening.accept()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECORD)
        return near, far


class Slow:
    """A client that takes some of its answer now and then, of which each is in time."""

    def __init__(self, near: socket.socket, context: ssl.SSLContext | None) -> None:
        self._near, self._context, self._over = near, context, threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join(PATIENCE_S)

    def _read(self) -> None:
        wrapped = self._context.wrap_socket(self._near, server_hostname="127.0.0.1") if self._context else self._near
        with wrapped:
            wrapped.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while not self._over.wait(0.02) and wrapped.recv(RECORD):
                pass


@needed
@pytest.mark.parametrize("tls", [True, False], ids=["TLS", "plain"])
def test_who_takes_an_answer_too_slowly_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tls: bool):
    """The time is for the whole answer, not for each of its parts."""
    monkeypatch.setattr(limits, "ANSWER_S", 0.3)
    authority = Authority(tmp_path / "authority")
    own = Mount(tmp_path / "own", authority.issue("IP:127.0.0.1"))
    served = Renewed(Files(str(own.cert), str(own.key)), pytest.fail).current().context
    near, far = connection()
    slow = Slow(near, verifying(str(authority.ca)) if tls else None)
    service = HttpService(wsgi_answers(large), 1000, LimitRefusals(lambda _limit: None))
    with served.wrap_socket(far, server_side=True) if tls else far as connected, pytest.raises(TimeoutError):
        service.serve(Connection(connected, "peer", {}))
    slow.end()
