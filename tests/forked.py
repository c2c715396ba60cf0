"""Our programs, forked from a process that has imported them already, for tests, which start them hundreds of times.

Its imports are most of what a start takes. Each process of tests has one for each program, which imports it and forks one
for each start: `main()` runs in a process of its own, with its own arguments, environment, outputs and end, as by its
console script. In the demo, by `make cluster`, beside real kubelets of this machine, in benchmarks, and by runtimes it is
executed, as in its image.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO, Any, BinaryIO

from lab.standins.patience import PATIENCE_S

PYTHON = sys.executable
"""Where a test has put another interpreter in its place, that one executes programs."""

PROGRAMS = {
    "numakin-extender": ("extender.main", "kubernetes.client", "kubernetes.config"),
    "numakin-enforcer": (
        "enforcer.cli.main", "enforcer.cli.doctor", "enforcer.cli.status", "enforcer.hook.process",
        "enforcer.bypass.process", "enforcer.observer.process",
    ),
    "kubectl-numakin": ("numakin.kubectl.main",),
}  # fmt: skip
"""By their console scripts' names: modules that are imported once, the first of which has `main`, also those that it
imports when they are needed.
"""

AS_WRITTEN: Mapping[str, float] = MappingProxyType({})

MOST_BYTES = 1 << 17
"""Of a request: arguments and environment."""

_PR_SET_PDEATHSIG = 1

ROOM_FOR_TITLES = " " * 1000
"""In the command line of what forks: a program writes the titles of its own processes over it."""


class Forked:
    """What tests need of subprocess.Popen."""

    def __init__(self, status: socket.socket) -> None:
        """status: gives the pid first, and how it ended at last."""
        self._status = status
        self.pid = int(status.recv(32))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, of a signal its number negated; None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Nothing to one that has ended, also where that is not told yet."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(self._status.recv(32) or -signal.SIGKILL)  # it ends with who forked it
            self._status.close()
        return self.returncode


class Forking:
    """The process that has imported a program."""

    def __init__(self, program: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.forked", program, str(theirs.fileno()), ROOM_FOR_TITLES]
        null = subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=null, stdout=null)

    def start(
        self,
        arguments: Sequence[str],
        out: IO[Any],
        environment: Mapping[str, str],
        *,
        given: IO[Any] | None = None,
        err: IO[Any] | None = None,
        constants: Mapping[str, float] = AS_WRITTEN,
    ) -> Forked:
        """It with these arguments. given: its standard input, else nothing. err: where it complains, else `out`.
        constants: values that it has instead of those of its modules, by MODULE.NAME.
        """
        request = {"arguments": [*arguments], "environment": {**environment}, "folder": str(Path.cwd())}
        request["constants"] = {**constants}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, Path(os.devnull).open("rb") as nothing, self._lock:
            passed = [file.fileno() for file in (given or nothing, out, err or out, theirs)]
            socket.send_fds(self._requests, [json.dumps(request).encode()], passed)
        return Forked(ours)

    def end(self) -> None:
        self._requests.close()
        self._process.wait()


_servers: dict[str, Forking] = {}


def prepare(program: str) -> None:
    """Has it imported for those that this process starts, and those processes that are forked from it."""
    if program not in _servers:
        _servers[program] = Forking(program)


def _server(program: str) -> Forking:
    prepare(program)
    return _servers[program]


def _started(
    program: str,
    arguments: Sequence[str],
    log: BinaryIO,
    environment: Mapping[str, str],
    *,
    constants: Mapping[str, float] = AS_WRITTEN,
) -> Forked:
    """Both its outputs go to the log."""
    return _server(program).start(arguments, log, environment, constants=constants)


extender = partial(_started, "numakin-extender")
enforcer = partial(_started, "numakin-enforcer")


def run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], given: str = ""
) -> subprocess.CompletedProcess[str]:
    """To its end, as subprocess.run() does with text. given: its standard input."""
    with TemporaryFile() as said, TemporaryFile() as complained, TemporaryFile() as read:
        read.write(given.encode())
        read.seek(0)
        process = _server(program).start(arguments, said, environment, given=read, err=complained)
        try:
            status = process.wait(PATIENCE_S)
        finally:
            process.kill()
        texts = []
        for file in (said, complained):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess([program, *arguments], status, *texts)


def end() -> None:
    """Of the processes that fork, and of those that they forked."""
    while _servers:
        _servers.popitem()[1].end()


def _forking(requests: socket.socket) -> bool:
    """In the process that forks: whether this is one that was forked, and no longer that process, which has ended."""
    woken, waking = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(running)
        if requests.fileno() in ready:
            message, descriptors, *_ = socket.recv_fds(requests, MOST_BYTES, 4)
            if not message:
                return False
            *standard, status = descriptors
            told = socket.socket(fileno=status)
            if (pid := os.fork()) == 0:
                for other in (requests, told, *running.values()):
                    other.detach()
                _become(json.loads(message), standard)
                return True
            for each in standard:
                os.close(each)
            running[pid] = told
            told.send(str(pid).encode())


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as told, suppress(OSError):
            told.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: Mapping[str, Any], standard: Sequence[int]) -> None:
    """As an executed program begins, in a session of its own. standard: descriptors of its standard input and outputs."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]
    for name, value in request["constants"].items():
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(module), constant), name
        setattr(import_module(module), constant, value)


def _main() -> None:
    program, requests, _ = sys.argv[1:]
    first, *others = PROGRAMS[program]
    main = import_module(first).main
    for module in others:
        import_module(module)
    gc.freeze()
    if _forking(socket.socket(fileno=int(requests))):
        sys.argv[0] = program
        sys.exit(main())


if __name__ == "__main__":
    _main()
