"""A forked program is a process as an executed one is."""

from __future__ import annotations

import os
import select
import signal
import socket
from pathlib import Path

from lab.standins.extender import ExtenderProcess
from lab.standins.patience import PATIENCE_S
from tests import forked


def test_what_its_program_says_and_how_it_ends_are_its_own(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = forked.extender(["--nonsense"], log, {})
    assert process.wait(PATIENCE_S) == 2
    assert "--nonsense" in (tmp_path / "log").read_text()


def test_each_has_its_own_log_and_ends_by_a_signal(tmp_path: Path) -> None:
    extenders = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        options = ("--no-kube", "--log-level", "info")
        extenders.append(ExtenderProcess(tmp_path / name, options, begin=forked.extender))
        extenders[-1].start()
    one, other = extenders
    assert one.pid != other.pid
    shared = {str(Path(f"/proc/{each.pid}/fd/1").readlink()) for each in extenders}
    assert shared == {str(each.log) for each in extenders}
    process = one.process
    assert process is not None
    one.kill()
    assert process.returncode == -signal.SIGKILL
    assert other.end() == 0


def test_a_signal_to_one_that_has_ended_and_of_which_that_is_not_told_yet_does_nothing() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    no_process = int(Path("/proc/sys/kernel/pid_max").read_text())
    with theirs:
        theirs.send(str(no_process).encode())
        process = forked.Forked(ours)
        process.kill()
        theirs.send(b"-9")
    assert process.wait(PATIENCE_S) == -signal.SIGKILL


def test_it_leads_a_process_group_and_ends_with_the_process_that_forked_it(tmp_path: Path) -> None:
    forking = forked.Forking("numakin-extender")
    extender = ExtenderProcess(tmp_path, ("--no-kube",), begin=forking.start)
    extender.start()
    assert os.getpgid(extender.pid) == extender.pid
    gone = os.pidfd_open(extender.pid)
    forking.end()
    assert select.select([gone], [], [], PATIENCE_S)[0] == [gone]
    os.close(gone)
    assert extender.end() == -signal.SIGKILL
