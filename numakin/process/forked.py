"""Processes that are forked from their supervisor: what it has imported is in memory once for all of them, and no
interpreter has to start. Standard library only.

The supervisor must have a single thread, and none of a library's that a fork would tear in two (gRPC's): a program
imports such a library itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

POLL_S = 0.02
"""Seconds between two looks at whether a process has ended, while a caller waits for that; not by time.sleep(), which
waits for a point in time, and so fails where libfaketime misleads it.
"""


_PR_SET_NAME = 15

_ARG_START, _ARG_END = 45, 46
"""Where the kernel looks for the command line: fields 48 and 49 of /proc/self/stat, from the third on (proc(5))."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a process does. title: what `ps` shows, before the arguments. main: returns the exit status."""

    title: str
    arguments: Sequence[str]
    main: Callable[[Sequence[str]], int]


@dataclass(slots=True)
class Forked:
    """A process, with the attributes of subprocess.Popen. returncode: minus the number of the signal that ended it."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, once it has ended."""
        if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self, patience_s: float) -> int | None:
        """None when it has not ended by then."""
        deadline = time.monotonic() + patience_s
        while self.poll() is None and time.monotonic() < deadline:
            select.select((), (), (), POLL_S)
        return self.returncode

    def send(self, number: signal.Signals) -> None:
        """Nothing for one that has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def cpu_s(pid: int) -> float:
    """What all threads of a process have used of the CPUs: fields 14 and 15 of /proc/PID/stat (proc(5)). 0 once it has
    ended and was waited for.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def forked(program: Program, descriptors: Collection[int], variables: Mapping[str, str]) -> Forked:
    """Starts a process that has these descriptors beside the standard ones, and these variables in its environment.
    OSError: the system has no room for one more.
    """
    # What there is by now is left alone by the garbage collectors of both, which would write to every page of it.
    gc.freeze()
    # A signal that came before the new process is on its own would be written to the supervisor's socket.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _live(program, descriptors, variables, mask)
    finally:  # of the supervisor alone: the new process never returns
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Forked(pid)


def _live(
    program: Program, descriptors: Collection[int], variables: Mapping[str, str], mask: Collection[int]
) -> NoReturn:
    """The new process: the supervisor's frames below this one are never returned to."""
    status = 1
    try:
        set_title((program.title, *program.arguments))
        _forget_handlers()
        _close_all_but(descriptors)
        os.environ.update(variables)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = program.main(program.arguments)
    except SystemExit as leaving:
        status = _exit_status(leaving.code)
    except BaseException:  # noqa: BLE001 - shown as the interpreter would show it
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)


def _forget_handlers() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _close_all_but(descriptors: Collection[int]) -> None:
    kept = {0, 1, 2, *descriptors}
    for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if descriptor not in kept:
            with suppress(OSError):  # the listing's own, closed by now
                os.close(descriptor)


def _exit_status(code: object) -> int:
    """As the interpreter takes what was given to sys.exit()."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def set_title(words: Sequence[str]) -> None:
    """Puts these words in place of the command line, as far as they fit into its memory, and the first 15 bytes of the
    first one in place of the name. Nothing happens where there is no /proc.
    """
    with suppress(OSError):
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(stat[_ARG_START]), int(stat[_ARG_END])
        size = max(0, end - start)
        # A last byte other than 0 would make the kernel go on into the environment.
        title = b"".join(os.fsencode(word) + b"\0" for word in words)[: max(0, size - 1)]
        ctypes.memmove(start, title.ljust(size, b"\0"), size)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, os.fsencode(words[0])[:15] + b"\0")
