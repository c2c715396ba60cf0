"""A program at a terminal, as a person sees it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from lab.standins.patience import until


class Terminal:
    """process: whose terminal it is."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process, self._descriptor = process, descriptor
        self._written = b""

    def shows(self, text: str) -> str:
        """Waits until this has been written since the last time, and returns all that was."""
        return until(lambda: self._taken(text), f"{text!r} on the terminal")

    def interrupt(self) -> int:
        """^C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> int:
        """The exit code of a program that ends by itself. What it still writes is read: at a terminal that nobody reads
        it would wait for ever.
        """
        until(self._ended, "its end")
        return self.process.returncode

    def _ended(self) -> bool:
        self._read()
        return self.process.poll() is not None

    def _read(self) -> None:
        with suppress(OSError):  # nothing now, or nobody has it open any more
            self._written += os.read(self._descriptor, 1 << 16)

    def _taken(self, text: str) -> str:
        self._read()
        seen = self._written.decode(errors="replace")
        if text not in seen:
            return ""
        self._written = b""
        return seen


@contextmanager
def terminal(command: Sequence[str], **environment: str) -> Iterator[Terminal]:
    """Of 24 lines and 120 columns. ^C ends it, which what a shell starts in the background ignores."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    sized = {"LINES": "24", "COLUMNS": "120", "TERM": "xterm"}
    program, environment = ["env", "--default-signal=INT", *command], os.environ | sized | environment
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)
