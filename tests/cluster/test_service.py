"""The Service of the cluster leads to a replica that takes connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from lab.cluster.service import Service
from lab.standins.patience import PATIENCE_S
from numakin.process.ports import free_port


@pytest.fixture
def replica() -> Iterator[str]:
    """One that sends back what it receives, on one connection."""

    def echo() -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(1024):
                connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        thread = threading.Thread(target=echo)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def started(stack: ExitStack, *backends: str) -> Service:
    service = Service(backends)
    stack.callback(service.stop)
    service.start()
    return service


def test_a_connection_goes_to_the_first_replica_that_takes_it(replica: str):
    with ExitStack() as stack:
        service = started(stack, f"127.0.0.1:{free_port()}", replica)
        host, _, port = service.address.rpartition(":")
        with closing(socket.create_connection((host, int(port)), 60)) as connection:
            connection.sendall(b"hello")
            assert connection.recv(1024) == b"hello"
    assert service.errors == []


def test_what_fails_in_its_thread_is_kept_as_an_error():
    with ExitStack() as stack:
        service = started(stack, "127.0.0.1:no port")
        host, _, port = service.address.rpartition(":")
        with closing(socket.create_connection((host, int(port)), 60)) as connection:
            assert connection.recv(1024) == b""
    assert [error.split(": ")[:2] for error in service.errors] == [["a connection to the Service", "ValueError"]]
