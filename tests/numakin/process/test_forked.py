"""A program in a process of its own, forked from this one, as an operator and its supervisor see it."""

import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S
from numakin.process.forked import Program, forked
from numakin.process.signals import received
from numakin.process.supervisor import Child
from tests.numakin.process.forking import started, written

pytestmark = pytest.mark.alone


@pytest.mark.parametrize(
    ("main", "status"),
    [
        (lambda _arguments: 0, 0),
        (lambda _arguments: 3, 3),
        (lambda _arguments: sys.exit(2), 2),
        (lambda _arguments: sys.exit(), 0),
        (lambda _arguments: sys.exit("why"), 1),
        (lambda _arguments: 1 // 0, 1),
        (lambda _arguments: os.kill(os.getpid(), signal.SIGKILL), -signal.SIGKILL),
    ],
)
def test_its_status_is_as_that_of_a_program_of_its_own(main, status: int) -> None:
    process = started(main)
    assert process.wait(PATIENCE_S) == status
    assert process.poll() == status
    process.send(signal.SIGTERM)  # nobody may get it any more


def test_an_exception_is_shown(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", sys.__stderr__)
    started(lambda arguments: arguments.index(0)).wait(PATIENCE_S)
    assert "ValueError" in capfd.readouterr().err


def test_ps_shows_its_title_and_options_as_far_as_there_is_room() -> None:
    words = written(lambda out: os.write(out, Path("/proc/self/cmdline").read_bytes()) and 0)
    whole = b"numakin-tried\0--option\0value\0"
    shown = words.rstrip(b"\0") + b"\0"
    assert shown.startswith(b"numakin-tried\0")
    assert whole.startswith(shown[:-1])
    assert written(lambda out: os.write(out, Path("/proc/self/comm").read_bytes()) and 0) == b"numakin-tried\n"


def test_an_argument_may_be_any_bytes() -> None:
    assert forked(Program("numakin-tried", ("/run/\udcff",), lambda _arguments: 0), (), {}).wait(PATIENCE_S) == 0


def test_it_has_its_descriptors_and_variables_and_no_others() -> None:
    def main(out: int) -> int:
        # The listing's own descriptor is closed by the time that it is complete.
        live = [path for path in [*Path("/proc/self/fd").iterdir()] if path.exists()]
        os.write(out, f"{sorted(int(path.name) for path in live) == [0, 1, 2, out]} {os.environ['COLOUR']}".encode())
        return 0

    read, write = os.pipe()
    process = forked(Program("numakin-tried", (), lambda _arguments: main(write)), (write,), {"COLOUR": "red"})
    assert process.wait(PATIENCE_S) == 0
    assert os.read(read, 64) == b"True red"
    assert "COLOUR" not in os.environ
    os.close(read)
    os.close(write)


def test_a_signal_to_it_ends_it_and_is_not_taken_for_one_to_the_supervisor() -> None:
    """Though the supervisor has handlers, and a socket on which their signals arrive."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        with received((signal.SIGTERM,)) as signals:
            process = started(lambda _arguments: signal.pause())  # type: ignore[arg-type, return-value]
            process.send(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == -signal.SIGTERM
            assert select.select([signals], [], [], 0)[0] == []
    finally:
        os.close(signal.set_wakeup_fd(-1))
        signal.signal(signal.SIGTERM, before)


def test_who_waits_too_short_is_told_that_it_still_runs() -> None:
    process = started(lambda _arguments: signal.pause())  # type: ignore[arg-type, return-value]
    try:
        assert process.wait(0.0) is None
    finally:
        process.send(signal.SIGKILL)
        assert process.wait(PATIENCE_S) == -signal.SIGKILL


NOBODY = 65_533
"""A user whom no limit of processes is lifted for, and who has no others here."""


def test_one_that_the_system_has_no_room_for_is_started_later_and_signals_still_arrive() -> None:
    def main(out: int) -> int:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        child, most = Child("tried", Program("numakin-tried", (), lambda _arguments: 0)), resource.RLIMIT_NPROC
        resource.setrlimit(most, (0, limit := resource.getrlimit(most)[1]))
        child.start()
        waits = child.process is None and child.due > time.monotonic()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        resource.setrlimit(most, (limit, limit))
        child.start()
        ended = child.process.wait(PATIENCE_S) if child.process is not None else "not started"
        os.write(out, f"{waits} {len(blocked)} {ended}".encode())
        return 0

    assert written(main) == b"True 0 0"
