"""Keeps `RUN_DIR/allocations.json`: what each container was given, for a later start of this process.

It is written once for a burst of events, within 0.1 s, so no container waits for it; what was given in between is known
by the mark that a container carries from its creation. Where no answer is held up (Synchronize, moves, release)
it is written first. While the run folder takes nothing, a file in memory that outlives this process does.
"""

from __future__ import annotations

from _blake2 import blake2b  # not by hashlib, which loads OpenSSL: 3 MiB
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from enforcer.hook.agent import Agent
from enforcer.hook.ownership import checkpoint, private_file
from numakin.process.log import Log

log = Log("hook.recorder")

NAME = "allocations.json"

MEMORY = Path("/dev/shm")
"""A file system of its own, which is there in every container and kept when the container restarts."""

LARGEST = 4 << 20
"""Bytes that are read: `checkpoint.MOST` containers on a machine with many CPUs, several times over."""


UNWORDED = (None,) * 5
"""Of what the text was made last, as nothing of it is by now."""


def spare_of(run_dir: Path) -> Path:
    """The file that is written while the run folder takes none; there only as long."""
    return MEMORY / f"numakin-{blake2b(str(run_dir.resolve()).encode(), digest_size=8).hexdigest()}.json"


class Recorder:
    """spare: where to write while the run folder takes nothing. soon: calls back at once, but from the loop.
    failure: why the last try to write to the run folder failed; empty: it did not.
    """

    def __init__(self, run_dir: Path, spare: Path, agent: Agent, soon: Callable[[Callable[[], None]], object]) -> None:
        self._path, self._spare, self._agent, self._soon = run_dir / NAME, spare, agent, soon
        self._wording = checkpoint.Wording()
        self._pending = False
        self._unanswered, self._heard = 0, False
        self._written, self._worded, self._inode = "", "", 0
        self._basis: tuple[object, ...] = UNWORDED
        self.failure = ""

    def restore(self) -> None:
        """Hands the agent what an earlier process wrote; nothing, with a warning, where that can't be taken."""
        past = self._read(self._spare) or self._read(self._path)
        if past is None:
            return
        self._agent.takeover.remember(past)
        if past.released:
            log.warning("released: nothing is pinned until `numakin-enforcer resume`")

    def _read(self, path: Path) -> checkpoint.Past | None:
        try:
            text = private_file.read(path, LARGEST)
            return checkpoint.read(text) if text is not None else None
        except (OSError, ValueError) as error:
            log.warning("what containers were given before is not known: the file is made anew", file=path, error=error)
            return None

    def note_event(self) -> None:
        """From the runtime: what was answered to its former events is carried out by now."""
        self._heard = self._heard or not self._unanswered

    def sending(self) -> None:
        """The runtime is to get, once it was written down, what none of its events asked for."""
        self._unanswered += 1

    def answered(self) -> None:
        """By the runtime, to what was sent: how it came out is in the ledger."""
        self._unanswered -= 1
        self.note_event()

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
                with suppress(OSError):
                    self._spare.unlink()
        except OSError as error:
            self._failed(error, text)
            return
        if self.failure:
            log.info("what containers are given is written down again", file=self._path)
        self.failure = ""

    def _text(self) -> str:
        """Worded anew only when something has changed."""
        ledger = self._agent.ledger
        if self._heard:
            self._wording.carried_out()
            self._heard, self._basis = False, UNWORDED
        occupancy, quotas = ledger.occupancy, ledger.demands.quotas
        basis = (occupancy.allocations, occupancy.reservations, ledger.past, ledger.released, quotas)
        if any(now is not before for now, before in zip(basis, self._basis, strict=True)):
            self._worded = self._wording.text(
                occupancy, ledger.past, released=ledger.released, quotas=quotas, beside=ledger.beside
            )
            self._basis = basis
        return self._worded

    def _there(self) -> bool:
        try:
            return self._path.lstat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _failed(self, error: OSError, text: str) -> None:
        """Tried again at the next change, and every few seconds."""
        self._written = ""
        kept = self._keep(text)
        if str(error) != self.failure:
            self._agent.records.counts["not written down"] += 1
            about = {"file": self._path, "error": error}
            if kept:
                log.warning("what containers were given is kept in memory meanwhile", kept_in=self._spare, **about)
            else:
                log.warning(
                    "what containers were given can't be written down: a restart may not know its own work", **about
                )
        self.failure = str(error)

    def _keep(self, text: str) -> bool:
        try:
            private_file.replace(self._spare, text)
        except OSError:
            return False
        return True
