"""What an observer tells a hook that has come anew, over the real socket; the hook's end is the test's."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest

from enforcer.local import control
from enforcer.observer.process import Observer
from enforcer.settings.config import Config
from lab.standins.patience import PATIENCE_S
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.state.occupancy import Reservation
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb
from tests.machines import SMALL
from tests.numakin.placement.asking import demand

LATER_S = 600.0
"""Seconds of the second window, which no test waits for."""


class Hook:
    """Of a node on which a and b run."""

    def __init__(self, folder: Path) -> None:
        talk = Window(0.1, (Flow("a", "b", "tcp", 10_000, 100),))
        (folder / "talk").write_text(talk.to_json())
        self._config = Config(
            replay=str(folder / "talk"), window_s=LATER_S, metrics_listen="", podresources_socket="off", mode="bypass"
        )
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "hook.sock"))
        self._listener.listen()
        self._listener.settimeout(PATIENCE_S)

    @contextmanager
    def session(self, name: str) -> Iterator[Iterator[local.ToHook]]:
        """What the observer sends until this hook ends."""
        sock, _ = self._listener.accept()
        with sock:
            sock.settimeout(PATIENCE_S)
            start = local.Start(session=name, config=self._config.to_json(), machine=convert.machine_to(SMALL))
            there = [Reservation(pod, pod, "", NumaSet.parse("0"), demand(1), workload=f"ns/Pod/{pod}") for pod in "ab"]
            report = pb.Report(generation=1, reservations=map(convert.reservation_to, there))
            containers = [
                local.LocalContainer(id=pod, pod=pod, workload=f"ns/Pod/{pod}", opted_in=True) for pod in "ab"
            ]
            for message in (
                local.FromHook(start=start),
                local.FromHook(report=report),
                local.FromHook(containers=local.Containers(whole=True, containers=containers)),
            ):
                sock.sendall(control.framed(message))
            yield _messages(sock)

    def close(self) -> None:
        self._listener.close()


def _messages(sock: socket.socket) -> Iterator[local.ToHook]:
    buffer = bytearray()
    while data := sock.recv(1 << 16):
        buffer += data
        yield from map(local.ToHook.FromString, control.taken(buffer))


def learned(messages: Iterator[local.ToHook]) -> tuple[set[str], set[str]]:
    """The pods and workloads that have kin, and the workloads that are planned for, as the observer tells them first."""
    kin, plan, end = None, None, time.monotonic() + PATIENCE_S
    for message in takewhile(lambda _: time.monotonic() < end, messages):
        kin = message.kin if message.HasField("kin") else kin
        plan = message.plan if message.HasField("plan") else plan
        if kin is not None and plan is not None:
            return {row.pod for row in kin.rows}, {row.name for row in plan.workloads}
    raise AssertionError("the observer has told no kin, or no plan")


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made = Hook(tmp_path)
    yield made
    made.close()


def test_a_hook_that_comes_anew_is_told_what_was_learned_and_planned_before_the_next_window(
    hook: Hook, tmp_path: Path
) -> None:
    """Pods that come meanwhile would be placed without it."""
    observer = Observer(tmp_path)
    ends, ended = socket.socketpair()
    running = threading.Thread(target=observer.run, args=(ended,))
    running.start()
    try:
        with hook.session("first") as messages:
            known = learned(messages)
        with hook.session("second") as messages:
            assert learned(messages) == known == ({"a", "b", "ns/Pod/a", "ns/Pod/b"}, {"ns/Pod/a", "ns/Pod/b"})
    finally:
        ends.close()
        running.join(PATIENCE_S)
        ended.close()
