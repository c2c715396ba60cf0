"""The processes under test: found in procfs, signalled, frozen, starved, and measured."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.soak.clock import WallClock
from tests.titled import TITLE, children

PATIENCE_S = 90.0
"""Until a process must be back; it only ends a run that failed."""

FREEZER = Path("/sys/fs/cgroup/freezer")
"""cgroup v1's; on v2 each cgroup has a `cgroup.freeze`."""

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))


class NotSettled(RuntimeError):
    """What should have come back did not."""


def until(done: Callable[[], object], lacking: Callable[[], str], within_s: float = PATIENCE_S) -> None:
    """Raises NotSettled with what is lacking then."""
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            raise NotSettled(f"after {within_s:g} s: {lacking()}")
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of resident memory and open descriptors of one process."""

    resident: int
    descriptors: int


def footprint(pid: int) -> Footprint | None:
    """None for a process that has gone."""
    try:
        resident = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        if resident is None:
            return None
        return Footprint(int(resident[1]) << 10, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return None


def naming(folder: Path) -> set[int]:
    """Processes of the enforcer whose command line names this folder."""
    pids = set()
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
        except OSError:  # it has gone meanwhile
            continue
        if (b"enforcer" in line or line.startswith(TITLE)) and str(folder).encode() in line:
            pids.add(int(entry.name))
    return pids


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    send(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        send(pid, signal.SIGCONT)


def can_freeze() -> bool:
    return _freezer("numakin-soak") is not None and os.access(FREEZER, os.W_OK)


@contextmanager
def frozen(pids: Sequence[int]) -> Iterator[None]:
    """By the freezer, as a node's suspend or a debugger would: the processes can't see it."""
    folder = _freezer(f"numakin-soak-{os.getpid()}")
    if folder is None:
        raise RuntimeError("no freezer is mounted")
    folder.mkdir(exist_ok=True)
    for pid in pids:
        with contextlib.suppress(OSError):
            (folder / "cgroup.procs").write_text(str(pid))
    state, on, off = _switch(folder)
    state.write_text(on)
    try:
        yield
    finally:
        state.write_text(off)
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        until(lambda: not (folder / "cgroup.procs").read_text(), lambda: "the freezer is not empty")
        folder.rmdir()


def _freezer(name: str) -> Path | None:
    if FREEZER.is_dir():
        return FREEZER / name
    return next((top / name for top in UNIFIED if (top / "cgroup.controllers").exists()), None)


def _switch(folder: Path) -> tuple[Path, str, str]:
    v1 = folder / "freezer.state"
    return (v1, "FROZEN", "THAWED") if v1.exists() else (folder / "cgroup.freeze", "1", "0")


@contextmanager
def few_descriptors(pid: int, spare: int = 1) -> Iterator[None]:
    """It can open so many more than it has."""
    with _limited(pid, resource.RLIMIT_NOFILE, lambda: _highest_descriptor(pid) + 1 + spare):
        yield


@contextmanager
def little_memory(pid: int, spare: int = 2 << 20) -> Iterator[None]:
    """Its address space can grow by so many bytes."""

    def size() -> int:
        grown = re.search(r"^VmSize:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return (int(grown[1]) << 10 if grown else 0) + spare

    with _limited(pid, resource.RLIMIT_AS, size):
        yield


@contextmanager
def _limited(pid: int, what: int, limit: Callable[[], int]) -> Iterator[None]:
    before: tuple[int, int] | None = None
    try:
        before = resource.prlimit(pid, what)
        resource.prlimit(pid, what, (limit(), before[1]))
    except (ProcessLookupError, FileNotFoundError):
        pass  # it has gone meanwhile
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, what, before)


def _highest_descriptor(pid: int) -> int:
    return max((int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()), default=2)


class Enforcer:
    """`numakin-enforcer run`, started again when it ends, as the kubelet does. within: a command that becomes it."""

    def __init__(self, arguments: Sequence[str], log: Path, clock: WallClock, within: Sequence[str] = ()) -> None:
        self._command = [*within, sys.executable, "-m", "enforcer", "run", *arguments]
        self._log, self._clock = log, clock
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def keep(self) -> None:
        """Starts it where it does not run."""
        if self.process is None or self.process.poll() is not None:
            environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMAKIN_")}
            environment |= self._clock.environment
            with self._log.open("ab") as log:
                self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)
            self.starts += 1

    def processes(self) -> dict[str, int]:
        """role -> pid, of those that run."""
        if self.process is None or self.process.poll() is not None:
            return {}
        return {"supervisor": self.pid, **children(self.pid)}

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
