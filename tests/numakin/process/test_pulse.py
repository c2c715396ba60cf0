"""A process that is stopped or hangs is found by its silence, and started again."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S, until
from numakin.process.forked import Program
from numakin.process.pulse import AWAY_S, BEAT_S, PULSE, Pulse, beat
from numakin.process.supervisor import Child
from tests.clock import Clock
from tests.enforcer.running import Enforcer, enforcer

__all__ = ["enforcer"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pulse(clock: Clock) -> Pulse:
    return Pulse(clock, silent_s=20, start_s=90)


def passed(clock: Clock, pulse: Pulse, seconds: int, share: float = 0.0) -> float | None:
    """What it says after so long, in which it was asked each second. share: of a CPU, that the process has had."""
    for _ in range(seconds):
        clock.now += 1
        silent_s = pulse.silent_s(lambda: clock.now * share)
    return silent_s


def test_a_silent_process_is_told_after_its_time(clock: Clock, pulse: Pulse) -> None:
    beat({PULSE: str(pulse.descriptor)})
    assert passed(clock, pulse, 1) is None
    assert passed(clock, pulse, 20) is None
    assert passed(clock, pulse, 1) == 21
    beat({PULSE: str(pulse.descriptor)})
    assert passed(clock, pulse, 1) is None


def test_a_process_that_has_just_started_has_longer(clock: Clock, pulse: Pulse) -> None:
    beat({PULSE: str(pulse.descriptor)})
    passed(clock, pulse, 1)
    pulse.started()
    assert passed(clock, pulse, 90) is None
    assert passed(clock, pulse, 1) == 91


def test_a_supervisor_that_was_stopped_itself_does_not_blame_the_process(clock: Clock, pulse: Pulse) -> None:
    """As where the whole container is frozen for a while."""
    beat({PULSE: str(pulse.descriptor)})
    passed(clock, pulse, 10)
    clock.now += max(3_600, AWAY_S)
    assert pulse.silent_s(lambda: 0.0) is None
    assert passed(clock, pulse, 20) is None
    assert passed(clock, pulse, 1) == 21


@pytest.mark.parametrize(
    ("share", "told_after_s"),
    [
        pytest.param(0.0, 21, id="stopped"),
        pytest.param(0.01, 21, id="hung, and other threads look for Python's lock"),
        pytest.param(0.1, 199, id="a tenth of a CPU: as long until it has had one for its time"),
        pytest.param(1.0, 21, id="it computes and does nothing else"),
    ],
)
def test_a_process_that_works_but_gets_little_of_the_cpus_is_not_blamed(
    clock: Clock, pulse: Pulse, share: float, told_after_s: int
) -> None:
    beat({PULSE: str(pulse.descriptor)})
    assert passed(clock, pulse, told_after_s, share) is None
    assert passed(clock, pulse, 4, share) is not None


def test_a_pipe_that_nobody_reads_makes_no_process_wait(pulse: Pulse) -> None:
    environment = {PULSE: str(pulse.descriptor)}
    os.set_blocking(pulse.descriptor, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pulse.descriptor, b"." * 4096)
    beat(environment)


def beating(_arguments: Sequence[str]) -> int:
    while True:
        beat(os.environ)
        time.sleep(0.05)


@pytest.mark.alone
def test_a_stopped_process_is_killed_and_one_that_lives_is_not(clock: Clock) -> None:
    """Time goes on as the one that lives gives signs of it."""
    children = [Child(name, Program(name, (), beating), pulse=Pulse(clock, silent_s=2)) for name in ("first", "second")]
    for child in children:
        child.start()
    stopped, living = children
    try:
        for child in children:
            assert select.select([child.pulse._received], [], [], PATIENCE_S)[0]
        stopped.process.send(signal.SIGSTOP)

        def died() -> bool:
            if select.select([living.pulse._received], [], [], 0)[0]:
                clock.now += 0.1
            for child in children:
                child.kill_silent()
            return stopped.process.poll() is not None

        until(died, "its end")
        assert stopped.process.returncode == -signal.SIGKILL
        assert living.process.poll() is None
    finally:
        for child in children:
            child.process.send(signal.SIGKILL)
            child.process.wait(PATIENCE_S)


@pytest.mark.parametrize("module", ["hook", "observer"])
def test_both_processes_give_signs_of_life(enforcer: Enforcer, tmp_path: Path, module: str) -> None:
    received, written = os.pipe()
    enforcer.run_dir.mkdir()
    options = [str(tmp_path)]
    if module == "hook":
        options = ["--run-dir", str(enforcer.run_dir), "--sysfs", str(enforcer.sysfs), "--node-name", "n1"]
        options += ["--nri-socket", str(enforcer.socket)]
    command = [sys.executable, "-m", f"enforcer.{module}", *options]
    with subprocess.Popen(command, env={**os.environ, PULSE: str(written)}, pass_fds=[written]) as process:
        try:
            for _ in range(2):
                assert select.select([received], [], [], PATIENCE_S + BEAT_S)[0]
                os.read(received, 1)
        finally:
            process.terminate()
    os.close(received)
    os.close(written)


def test_status_tells_how_the_observer_is(enforcer: Enforcer) -> None:
    enforcer.start()
    until(lambda: enforcer.get("/healthz")[0] == 200, "the observer")
    until(lambda: (enforcer.status()["observer"]["seconds_ago"] or 99) < 10 * BEAT_S, "its sign of life")
    assert enforcer.status()["observer"]["degraded"] == ""
