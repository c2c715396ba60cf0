"""Two processes supervised as one: the hook, which every container of the node waits for (or the bypass, where the
runtime has no NRI), and the observer, which does all the rest.

Either is started again when it dies, without the other. Only a hook that the runtime launched can't be: its
connection came with it, so all ends with it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from numakin.process.forked import Forked, Program, cpu_s, forked
from numakin.process.lock import AnotherRunsError, renewed
from numakin.process.log import Log
from numakin.process.memory import leave_files
from numakin.process.pulse import PULSE, Pulse
from numakin.process.signals import received

log = Log("supervisor")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
"""Waits before a process that died is started again: doubled while it lives shorter than the longest."""

GRACE_S = 5.0
"""How long a process may take to end after SIGTERM before it is killed."""

OBSERVER_AFTER_S = 0.3
"""The observer starts so long after the hook: its start takes a core for longer than the hook's, for which containers
wait.
"""

LEAVE = 3
"""A process ends with this status when starting it again would be no use (a bad configuration); it has said why."""

TICK_S = 0.5
"""A process that waits for its next start is checked this often."""

WAITED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
"""What ends the supervisor's wait. Not by `signal.sigtimedwait`: CPython's returns uninitialized memory when the
wait is interrupted and its time is over, as by SIGSTOP and SIGCONT.
"""

SUPERVISOR = "NUMAKIN_SUPERVISOR"
"""The environment variable that names each process's supervisor; in a container that is process 1."""

_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Child:
    """One of the two processes."""

    name: str
    program: Program
    descriptors: tuple[int, ...] = ()
    process: Forked | None = None
    wait_s: float = FIRST_WAIT_S
    started: float = 0.0
    due: float = field(default=0.0)
    pulse: Pulse = field(default_factory=Pulse)

    def start(self) -> None:
        """Or later, where the system has no room for one more process now: the other one is not to end for that."""
        variables = {SUPERVISOR: str(os.getpid()), PULSE: str(self.pulse.descriptor)}
        try:
            self.process = forked(self.program, (*self.descriptors, self.pulse.descriptor), variables)
        except OSError as error:
            self._wait(min(LONGEST_WAIT_S, self.wait_s * 2))
            log.warning("a process can't be started now", process=self.name, error=error, wait_s=self.wait_s)
            return
        self.pulse.started()
        self.started = time.monotonic()

    def kill_silent(self) -> None:
        """By SIGKILL, since one that is stopped takes no other signal. That it died is noted as of any other."""
        if self.process is None:
            return
        silent_s = self.pulse.silent_s(partial(cpu_s, self.process.pid))
        if silent_s is not None:
            log.error("a process gives no sign of life and is killed", process=self.name, silent_s=round(silent_s))
            self.process.send(signal.SIGKILL)
            self.pulse.started()

    def died(self, status: int) -> None:
        lived = time.monotonic() - self.started
        self._wait(FIRST_WAIT_S if lived > LONGEST_WAIT_S else min(LONGEST_WAIT_S, self.wait_s * 2))
        self.process = None
        log.warning("a process ended and is started again", process=self.name, status=status, wait_s=self.wait_s)

    def _wait(self, seconds: float) -> None:
        self.wait_s, self.due = seconds, time.monotonic() + seconds


def supervise(first: Child, observer: Child, run_dir: Path, *, launched: bool) -> int:
    """Runs both until a signal or, when the runtime launched us, until the first one ends. Returns the exit status.

    first: the hook or the bypass; the lock is the first of its descriptors.
    """
    observer.due = time.monotonic() + OBSERVER_AFTER_S
    signals = received(WAITED)
    status = None
    while status is None:
        for child in (first, observer):
            if child.process is None and time.monotonic() >= child.due:
                child.start()
                if child is observer:
                    leave_files()
        ending = _signals_within(signals, TICK_S) - {signal.SIGCHLD}
        if ending:
            log.info("asked to end", signal=min(ending).name)
            status = 0
        # A hook that the runtime launched can't be started again: its connection came with it.
        for child in (observer,) if launched else (first, observer):
            child.kill_silent()
        status = _lock_kept(first, run_dir) if status is None else status
        status = _reaped(first, observer, launched=launched) if status is None else status
    _end(first)
    _end(observer)
    return status


def _lock_kept(first: Child, run_dir: Path) -> int | None:
    """Takes the lock anew where its file was deleted; an exit status when another enforcer has it by now."""
    lock, *others = first.descriptors
    try:
        first.descriptors = (renewed(run_dir, lock), *others)
    except AnotherRunsError as error:
        log.error("the run folder is another enforcer's now", error=error)  # noqa: TRY400 - the message says all
        return 1
    return None


def _signals_within(signals: socket.socket, patience_s: float) -> set[signal.Signals]:
    """Those that came by now, waited for at most so long."""
    if not select.select([signals], [], [], patience_s)[0]:
        return set()
    return {signal.Signals(number) for number in signals.recv(1 << 12)} & WAITED


def _reaped(first: Child, observer: Child, *, launched: bool) -> int | None:
    """Notes who died; an exit status when that is the end of it all."""
    for child in (first, observer):
        ended = child.process.poll() if child.process is not None else None
        if ended is None:
            continue
        if child is first and (launched or ended == LEAVE):
            child.process = None
            return ended if ended in (0, LEAVE) else 1
        child.died(ended)
    return None


def _end(child: Child) -> None:
    if child.process is None:
        return
    child.process.send(signal.SIGTERM)
    if child.process.wait(GRACE_S) is None:
        log.warning("a process did not end and is killed", process=child.name)
        child.process.send(signal.SIGKILL)
        child.process.wait(GRACE_S)


def die_with_parent() -> None:
    """Called first by each process: it must not outlive a supervisor that was killed, and gets its signals itself."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.environ.get(SUPERVISOR, str(os.getppid())) != str(os.getppid()):
        sys.exit("the supervisor has gone already")
