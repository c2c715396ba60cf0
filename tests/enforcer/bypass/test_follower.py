"""The thread that follows a runtime over CRI, on a real gRPC connection."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Queue

from enforcer.bypass.changes import RuntimeSnapshot
from enforcer.bypass.follower import Follower
from lab.standins.cri import CriRuntime
from lab.standins.cri.cgroups import Cgroups
from lab.standins.patience import PATIENCE_S, until
from numakin.process.threads import STALE_AFTER_S
from numakin.wire import cri_pb2 as cri
from tests import supervised


class Slow(CriRuntime):
    """Answers no list of sandboxes while it is `held`."""

    def __init__(self, socket: Path, cgroups: Cgroups) -> None:
        super().__init__(socket, cgroups)
        self.held, self.asked, self.free = threading.Event(), threading.Event(), threading.Event()

    def ListPodSandbox(self, request: cri.ListPodSandboxRequest, context) -> cri.ListPodSandboxResponse:  # noqa: N802
        if self.held.is_set():
            self.asked.set()
            self.free.wait(PATIENCE_S)
        return super().ListPodSandbox(request, context)


def test_after_a_poll_that_took_so_long_that_the_runtime_seemed_away_it_is_there_again(tmp_path: Path) -> None:
    """Though nothing has changed meanwhile."""
    received: Queue[RuntimeSnapshot | None] = Queue()
    now, threads = 0.0, supervised.threads()
    threads.clock = lambda: now
    with Slow(tmp_path / "cri.sock", Cgroups(tmp_path, "0-159", "0-1")) as runtime:
        follower = Follower(f"unix://{tmp_path}/cri.sock", Path("/proc"), received.put, threads)
        follower.start()
        first = received.get(timeout=PATIENCE_S)
        runtime.held.set()
        assert runtime.asked.wait(PATIENCE_S)
        now = STALE_AFTER_S + 1
        assert follower.stale
        runtime.held.clear()
        runtime.free.set()
        assert received.get(timeout=PATIENCE_S) == first is not None
        until(lambda: not follower.stale, "it gets somewhere")
        follower.stop()
