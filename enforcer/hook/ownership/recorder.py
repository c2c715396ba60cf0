"""Keeps `RUN_DIR/allocations.json`: what each container was given, for a later start of this process.

It is written once for a burst of events, within 0.1 s, so no container waits for it; what was given in between is known
by the mark that a container carries from its creation. Where nobody's answer is held up (Synchronize, moves, release)
it is written first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from enforcer.hook.agent import Agent
from enforcer.hook.ownership import checkpoint, private_file
from process.log import Log

log = Log("hook.recorder")

NAME = "allocations.json"

LARGEST = 4 << 20
"""Bytes that are read: `checkpoint.MOST` containers on a machine with many CPUs, several times over."""


class Recorder:
    """soon: calls back at once, but from the loop. failure: why the last try to write failed; empty: it did not."""

    def __init__(self, run_dir: Path, agent: Agent, soon: Callable[[Callable[[], None]], object]) -> None:
        self._path, self._agent, self._soon = run_dir / NAME, agent, soon
        self._wording = checkpoint.Wording()
        self._pending = False
        self._written, self._worded, self._inode = "", "", 0
        self._basis: tuple[object, ...] = (None,) * 4
        self.failure = ""

    def restore(self) -> None:
        """Hands the agent what an earlier process wrote; nothing, with a warning, where that can't be taken."""
        try:
            text = private_file.read(self._path, LARGEST)
            past = checkpoint.read(text) if text is not None else checkpoint.Past()
        except (OSError, ValueError) as error:
            log.warning(
                "what containers were given before is not known: the file is made anew", file=self._path, error=error
            )
            return
        self._agent.takeover.remember(past)
        if past.released:
            log.warning("released: nothing is pinned until `numakin-enforcer resume`")

    def write_soon(self) -> None:
        """After the answers that are under way."""
        if not self._pending:
            self._pending = True
            self._soon(self.write)

    def write(self) -> None:
        """Where something has changed, or the file is not there any more."""
        self._pending = False
        text = self._text()
        try:
            if text != self._written or not self._there():
                self._inode = private_file.replace(self._path, text)
                self._written = text
        except OSError as error:
            self._failed(error)
            return
        if self.failure:
            log.info("what containers are given is written down again", file=self._path)
        self.failure = ""

    def _text(self) -> str:
        """Worded anew only when something has changed."""
        ledger = self._agent.ledger
        basis = (ledger.occupancy.allocations, ledger.occupancy.reservations, ledger.past, ledger.released)
        if any(now is not before for now, before in zip(basis, self._basis, strict=True)):
            self._worded = self._wording.text(ledger.occupancy, ledger.past, released=ledger.released)
            self._basis = basis
        return self._worded

    def _there(self) -> bool:
        try:
            return self._path.lstat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _failed(self, error: OSError) -> None:
        """Tried again at the next change, and every few seconds."""
        self._written = ""
        if str(error) != self.failure:
            log.warning(
                "what containers were given can't be written down: a restart may not know its own work",
                file=self._path,
                error=error,
            )
            self._agent.records.counts["not written down"] += 1
        self.failure = str(error)
