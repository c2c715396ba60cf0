"""The supervisor as a real process: what a debugger, a freezer or job control does to it."""

import ctypes
import os
import signal
import time
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.process.supervisor import TICK_S
from tests.enforcer.running import GROUP, Enforcer, cpus, enforcer, runtime

__all__ = ["enforcer", "runtime"]


def state(pid: int) -> str:
    """The kernel's letter for it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def interrupt(pids: list[int]) -> None:
    """Stops them for longer than the supervisor waits at a time, and lets them go on."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: {state(pid) for pid in pids} == {"T"}, "all are stopped")
    stopped = time.monotonic()
    until(lambda: time.monotonic() - stopped > TICK_S, "the wait that was interrupted is over")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    until(lambda: "T" not in {state(pid) for pid in pids}, "all go on")


@pytest.mark.parametrize("whole", [False, True], ids=["the supervisor alone", "all three processes"])
def test_stopped_and_continued_it_goes_on_supervising(enforcer: Enforcer, runtime: Runtime, *, whole: bool) -> None:
    process = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    before = enforcer.children()
    for _ in range(4):
        interrupt([process.pid, *(before.values() if whole else ())])
    os.kill(before["observer"], signal.SIGKILL)
    until(lambda: enforcer.children().get("observer", 0) not in (0, before["observer"]), "a new observer")
    assert enforcer.children()["hook"] == before["hook"]
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    assert cpus(runtime, made)
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    assert "asked to end signal=SIGTERM" in enforcer.log.read_text()


def test_the_observer_ends_whichever_of_its_threads_the_kernel_hands_the_signal_to(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """Another one than the main thread gets it where that one has just been frozen."""
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    observer = enforcer.children()["observer"]
    tids = {int(thread.name) for thread in Path(f"/proc/{observer}/task").iterdir()}
    lasting = min(tids - {observer})
    assert ctypes.CDLL(None).tgkill(observer, lasting, signal.SIGTERM) == 0
    until(lambda: enforcer.children().get("observer", observer) != observer, "it ends, and another is started")
