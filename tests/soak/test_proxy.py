"""The network of a soak fails as networks do, and what arrives is what was sent."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from tests.soak.proxy import Mode, Proxy

WAIT_S = 60.0
"""Only ends a test that failed."""

SENT = bytes(range(256)) * 64


@pytest.fixture
def far() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        yield listener


def opened(proxy: Proxy, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through it."""
    host, _, port = proxy.address.rpartition(":")
    near = socket.create_connection((host, int(port)), timeout=WAIT_S)
    far, _ = listener.accept()
    far.settimeout(WAIT_S)
    return near, far


def received(end: socket.socket, size: int = len(SENT)) -> bytes:
    data = b""
    while len(data) < size and (more := end.recv(size - len(data))):
        data += more
    return data


def test_delayed_data_arrives_whole_and_in_order_and_so_does_the_end(far: socket.socket) -> None:
    with Proxy("{}:{}".format(*far.getsockname())) as proxy:
        near, there = opened(proxy, far)
        proxy.mode(Mode.DELAY)
        with near, there:
            there.sendall(SENT)
            near.sendall(SENT)
            near.shutdown(socket.SHUT_WR)
            assert received(there) == SENT
            assert there.recv(1) == b""


@pytest.mark.parametrize("mode", [Mode.FORTH, Mode.BACK])
def test_one_way_is_stalled_and_the_other_is_not(far: socket.socket, mode: Mode) -> None:
    with Proxy("{}:{}".format(*far.getsockname())) as proxy:
        near, there = opened(proxy, far)
        near.sendall(b"?")
        assert there.recv(1) == b"?"
        proxy.mode(mode)
        goes, stalls = ((near, there), (there, near)) if mode is Mode.FORTH else ((there, near), (near, there))
        with near, there:
            stalls[0].sendall(SENT)
            goes[0].sendall(SENT)
            assert received(goes[1]) == SENT
            assert select.select([stalls[1]], [], [], 0)[0] == []
            proxy.mode(Mode.PASS)
            assert received(stalls[1]) == SENT
