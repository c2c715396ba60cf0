"""The hook's socket never makes the hook wait."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from enforcer.local import control
from enforcer.local.control import Control, LocalConnection
from numakin.process.loop import Loop
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: unix sockets take 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numakin.") as made:
        yield Path(made)


class Hook:
    """The hook's side, with a loop that a test turns by hand."""

    def __init__(self, path: Path) -> None:
        self.loop = Loop()
        self.heard: list[local.ToHook] = []
        self.path = path
        self.control = Control(path, self.loop, self._heard)

    def _heard(self, connection: LocalConnection, message: local.ToHook) -> None:
        if message.HasField("moves"):
            raise KeyError("a fault of ours")
        self.heard.append(message)
        connection.observing = True

    def turn(self) -> None:
        self.loop.run_once(2.0)

    def reader(self) -> socket.socket:
        """A connected observer."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(5)
        sock.connect(str(self.path))
        self.turn()
        sock.sendall(control.framed(local.ToHook(who=local.Who(role="observer"))))
        self.turn()
        return sock


@pytest.fixture
def hook(folder: Path) -> Iterator[Hook]:
    made = Hook(folder / "hook.sock")
    yield made
    made.control.close()
    made.loop.close()


def test_what_is_told_reaches_every_reader(hook: Hook) -> None:
    with hook.reader() as first, hook.reader() as second:
        hook.control.broadcast(local.FromHook(report=pb.Report(generation=7)))
        for sock in (first, second):
            (body,) = control.taken(bytearray(sock.recv(1000)))
            assert local.FromHook.FromString(body).report.generation == 7


def test_a_reader_that_does_not_read_is_dropped_and_the_hook_goes_on(hook: Hook) -> None:
    big = local.FromHook(status=local.Status(json="x" * (1 << 20)))
    with hook.reader() as deaf:
        for _ in range(control.MOST_UNSENT // (1 << 20) + 2):
            hook.control.broadcast(big)
        assert hook.control.observers == []
        while deaf.recv(1 << 20):
            pass


def test_one_that_asks_and_does_not_read_the_answers_is_dropped(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    big = local.FromHook(status=local.Status(json="x" * (1 << 20)))
    asked: list[int] = []

    def answer(connection: LocalConnection, _message: local.ToHook) -> None:
        connection.send(big)
        asked.append(len(connection.unsent))

    with hook.reader() as deaf:
        monkeypatch.setattr(hook.control, "_received", answer)
        deaf.sendall(control.framed(local.ToHook(who=local.Who())) * 100)
        hook.turn()
        assert max(asked) < control.MOST_UNSENT + (2 << 20)
        assert not hook.control.unsent
        while deaf.recv(1 << 20):
            pass


def test_readers_that_hang_keep_no_observer_away_and_cost_none(hook: Hook) -> None:
    with ExitStack() as hanging:
        first = hanging.enter_context(hook.reader())
        for _ in range(2 * control.MOST_CONNECTIONS):
            sock = hanging.enter_context(socket.socket(socket.AF_UNIX))
            sock.connect(str(hook.path))
            hook.turn()
        second = hanging.enter_context(hook.reader())
        hook.control.broadcast(local.FromHook(report=pb.Report(generation=7)))
        for observer in (first, second):
            (body,) = control.taken(bytearray(observer.recv(1000)))
            assert local.FromHook.FromString(body).report.generation == 7


def test_a_reader_that_has_gone_is_forgotten(hook: Hook) -> None:
    hook.reader().close()
    hook.turn()
    assert hook.control.observers == []


@pytest.mark.parametrize(
    "nonsense",
    [(control.LARGEST_MESSAGE + 1).to_bytes(4, "big"), b"\0\0\0\2\xff\xff", os.urandom(0) + b"\0\0\0\1\x07"],
    ids=["over the bound", "not protobuf", "truncated field"],
)
def test_nonsense_ends_only_the_connection_that_said_it(hook: Hook, nonsense: bytes) -> None:
    with hook.reader() as good, hook.reader() as bad:
        bad.sendall(nonsense)
        hook.turn()
        assert bad.recv(10) == b""
        hook.control.broadcast(local.FromHook(report=pb.Report(generation=1)))
        assert good.recv(100)


def test_a_fault_over_one_message_costs_that_message(hook: Hook) -> None:
    with hook.reader() as reader:
        before = len(hook.heard)
        for message in (local.ToHook(moves=local.Moves()), local.ToHook(plan=local.Plan())):
            reader.sendall(control.framed(message))
            hook.turn()
        assert [entry.WhichOneof("message") for entry in hook.heard[before:]] == ["plan"]
        assert len(hook.control.observers) == 1


def test_only_root_may_connect(hook: Hook) -> None:
    assert hook.path.stat().st_mode & 0o777 == 0o600


def test_messages_survive_being_split_anywhere() -> None:
    stream = b"".join(control.framed(local.ToHook(who=local.Who(role="r" * size))) for size in (0, 1, 300))
    for cut in range(len(stream)):
        buffer = bytearray(stream[:cut])
        bodies = control.taken(buffer)
        buffer += stream[cut:]
        bodies += control.taken(buffer)
        assert [len(local.ToHook.FromString(body).who.role) for body in bodies] == [0, 1, 300]
