"""What the hook's socket does not take at once: the status of a full node, the first report to an observer."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from enforcer.hook import status_report
from enforcer.hook.outbox import Outbox
from enforcer.hook.wiring import Wiring
from enforcer.local.control import Control, framed
from numakin.process.loop import Loop
from numakin.wire import local_pb2 as local
from tests.enforcer.hook.world import World

LONG = "x" * (3 << 20)

MOST_WAITS = 100
"""More than the pieces in which it goes."""


@pytest.fixture
def run_dir() -> Iterator[Path]:
    """A short path: unix sockets take 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numakin.") as made:
        yield Path(made)


@pytest.fixture
def loop(world: World, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """Of a hook in which nothing happens, so that there is nothing to publish."""
    monkeypatch.setattr(status_report, "of", lambda _agent: {"containers": [], "long": LONG})
    turned = Loop()
    wiring = Wiring(turned)
    wiring.agent, wiring._outbox = world.agent, Outbox(world.agent)
    wiring._start = local.Start(node="n1")
    wiring._control = Control(run_dir / "hook.sock", turned, wiring._received)
    yield turned
    wiring._control.close()
    turned.close()


def test_all_of_an_answer_is_sent_though_nothing_else_happens(loop: Loop, run_dir: Path) -> None:
    with socket.socket(socket.AF_UNIX) as reader:
        reader.connect(str(run_dir / "hook.sock"))
        loop.run_once(1.0)
        reader.sendall(framed(local.ToHook(who=local.Who(role="ask"))))
        loop.run_once(1.0)
        reader.setblocking(False)
        taken, waits = len(reader.recv(1 << 20)), 0
        while taken < len(LONG) and waits < MOST_WAITS:
            loop.run_once(0.1)
            waits += 1
            with suppress(BlockingIOError):
                taken += len(reader.recv(1 << 20))
    assert taken > len(LONG)
