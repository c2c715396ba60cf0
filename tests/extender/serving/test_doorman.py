"""The door of a port: who is let in, who waits, and how it is closed."""

from __future__ import annotations

import os
import queue
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from extender.serving import limits
from extender.serving.connection import Connection
from extender.serving.doorman import NICE, Doorman
from extender.serving.refusals import LimitRefusals
from lab.standins.patience import PATIENCE_S, until
from lab.standins.stranger import half_a_handshake
from numakin.process.threads import Threads
from numakin.wire.certificates import Files, Renewed
from numakin.wire.verification import verifying
from tests.certificates import Authority, Mount, needed


class Door:
    """A doorman whose connections are answered a line by a line, and a main thread as the program's. over: how often
    each limit was met. hold: cleared, answers wait for it.
    """

    def __init__(self, tls: Renewed | None = None) -> None:
        self.over: Counter[str] = Counter()
        self.hold, self.held = threading.Event(), threading.Event()
        self.hold.set()
        self.niceness: set[int] = set()
        self._begun: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        refusals = LimitRefusals(lambda limit: self.over.update([limit]))
        listening = socket.create_server(("127.0.0.1", 0))
        threads = Threads(lambda failure: self.over.update([str(failure.error)]))
        self.doorman = Doorman(
            "test", listening, self._serve, tls=tls, begin=self._begun.put, refusals=refusals, threads=threads
        )
        self._main = threading.Thread(target=self._run)
        self._main.start()
        self.doorman.start()

    def connect(self, context: ssl.SSLContext | None = None) -> socket.socket:
        host, _, port = self.doorman.address.rpartition(":")
        plain = socket.create_connection((host, int(port)), PATIENCE_S)
        return plain if context is None else context.wrap_socket(plain, server_hostname=host)

    def close(self, within_s: float = PATIENCE_S) -> None:
        self.doorman.close(within_s)
        self._begun.put(None)
        self._main.join(PATIENCE_S)

    def _run(self) -> None:
        for begin in iter(self._begun.get, None):
            begin()

    def _serve(self, connection: Connection) -> None:
        self.niceness.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        while line := connection.socket.recv(100):
            self.held.set()
            self.hold.wait(PATIENCE_S)
            if line == b"fault":
                raise KeyError("a fault of ours")
            connection.socket.sendall(line)


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.close()


def asks(connection: socket.socket, line: bytes = b"x") -> bool:
    """Whether it is answered; False where it is ended."""
    connection.sendall(line)
    return connection.recv(100) == line


def test_each_connection_has_a_thread_that_is_as_quick_as_any_other(door: Door) -> None:
    """Though the thread that shakes hands is not."""
    assert NICE > 0
    connections = [door.connect() for _ in range(3)]
    for _ in range(2):
        assert all(asks(connection) for connection in connections)
    assert door.niceness == {os.getpriority(os.PRIO_PROCESS, 0)}
    for connection in connections:
        connection.close()


def test_a_fault_costs_one_connection(door: Door) -> None:
    with door.connect() as first, door.connect() as other:
        assert asks(other)
        assert not asks(first, b"fault")
        assert asks(other)


def test_a_connection_that_ends_gives_its_place_back(door: Door) -> None:
    for _ in range(3 * limits.CONNECTIONS_PER_PEER):
        with door.connect() as connection:
            assert asks(connection)
        until(lambda: not len(door.doorman._inside), "it is gone")
    assert not door.over


def test_one_that_is_being_answered_when_the_door_closes_gets_its_answer_and_idle_ones_end(door: Door) -> None:
    with door.connect() as idle, door.connect() as busy:
        assert asks(idle)
        door.hold.clear()
        door.held.clear()
        busy.sendall(b"x")
        assert door.held.wait(PATIENCE_S)
        closing = threading.Thread(target=door.doorman.close, args=(PATIENCE_S,))
        closing.start()
        assert idle.recv(100) == b""
        assert closing.is_alive()
        door.hold.set()
        assert busy.recv(100) == b"x"
        assert busy.recv(100) == b""
        closing.join(PATIENCE_S)
        with pytest.raises(OSError):
            door.connect()


def test_an_answer_that_takes_too_long_is_not_waited_for(door: Door) -> None:
    with door.connect() as busy:
        door.hold.clear()
        busy.sendall(b"x")
        assert door.held.wait(PATIENCE_S)
        door.doorman.close(0)
        assert busy.recv(100) == b""
        door.hold.set()


def test_a_listening_socket_without_descriptors_is_tried_again(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where all that the process may have are taken."""
    real, failures = door.doorman._listening, [1, 1]

    class Short:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def accept(self) -> Any:
            if failures:
                failures.pop()
                raise OSError(24, "Too many open files")
            return real.accept()

    monkeypatch.setattr(door.doorman, "_listening", Short())
    with door.connect() as connection:
        assert asks(connection)
    assert door.over["descriptors"] == 2


@needed
class TestWithCertificates:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path / "authority")

    @pytest.fixture
    def door(self, authority: Authority, tmp_path: Path) -> Iterator[Door]:
        own = Mount(tmp_path / "own", authority.issue("IP:127.0.0.1"), authority.ca)
        made = Door(Renewed(Files(str(own.cert), str(own.key), str(own.ca)), pytest.fail))
        yield made
        made.close()

    @pytest.fixture
    def caller(self, authority: Authority, tmp_path: Path) -> ssl.SSLContext:
        mount = Mount(tmp_path / "caller", authority.issue("DNS:caller"))
        context = verifying(str(authority.ca))
        context.load_cert_chain(mount.cert, mount.key)
        return context

    def test_slow_handshakes_delay_nobody(self, door: Door, caller: ssl.SSLContext) -> None:
        """A byte of each at a time."""
        hello = half_a_handshake()
        with ExitStack() as stack:
            slow = [stack.enter_context(door.connect()) for _ in range(limits.CONNECTIONS_PER_PEER - 2)]
            for at in range(5):
                for each in slow:
                    with suppress(ConnectionError):  # its time for a handshake is over, on a busy machine
                        each.sendall(hello[at : at + 1])
                with door.connect(caller) as quick:
                    assert asks(quick)

    def test_who_shows_no_certificate_is_not_let_in_and_is_counted(self, door: Door, authority: Authority) -> None:
        answered = False
        with suppress(ssl.SSLError, ConnectionError), door.connect(verifying(str(authority.ca))) as stranger:
            answered = asks(stranger)
        assert not answered
        until(lambda: door.over["certificate"] == 1, "it is counted")
        assert not len(door.doorman._inside)

    def test_what_is_no_handshake_ends_the_connection(self, door: Door) -> None:
        with door.connect() as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with suppress(ConnectionError):
                assert b"HTTP" not in b"".join(iter(lambda: plain.recv(100), b""))

    def test_an_answer_under_way_is_encrypted_to_its_end_when_the_door_closes(self, door, caller) -> None:
        with door.connect(caller) as busy:
            door.hold.clear()
            busy.sendall(b"x")
            assert door.held.wait(PATIENCE_S)
            closing = threading.Thread(target=door.doorman.close, args=(PATIENCE_S,))
            closing.start()
            until(lambda: not door.doorman._thread.alive, "no more are let in")
            door.hold.set()
            assert busy.recv(100) == b"x"
            assert busy.recv(100) == b""
            closing.join(PATIENCE_S)
