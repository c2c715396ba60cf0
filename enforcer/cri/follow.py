"""Follows a container runtime over CRI: connects, looks whenever something happened, connects again.

Events say when to look, never what to believe: one that is lost costs time, no more. A runtime that has none, or none
that we may listen to, is looked at every POLL_S; one whose events are heard, every RELIST_S
besides. A look that finds what no event told of means that events get lost, so it is every POLL_S again until the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from enforcer.cri.changes import Snapshot
from enforcer.cri.looking import Looker
from enforcer.cri.runtime import Runtime, RuntimeAway
from enforcer.log import Log
from enforcer.nri.transport import backoff

log = Log("bypass.follow")

POLL_S = 0.25
"""A look at 200 containers costs us 0.8 ms of CPU."""

RELIST_S = 10.0


class Follower:
    """Run `run` in a thread. tell: gets every look from there, None when the runtime is lost."""

    def __init__(self, socket: str, procfs: Path, tell: Callable[[Snapshot | None], None]) -> None:
        self._socket, self._procfs, self._tell = socket, procfs, tell
        self._stopping = False
        self._wake = threading.Event()
        self._announced = False

    def run(self) -> None:
        delays, reason = backoff(), ""
        while not self._stopping:
            try:
                with Runtime(self._socket) as runtime:
                    self._listen_to(runtime)
                    looker = Looker(runtime, self._procfs)
                    found = looker.look()
                    self._tell(found)
                    delays, reason = backoff(), ""
                    self._look_on(looker, found)
            except RuntimeAway as error:
                self._tell(None)
                if str(error) != reason:  # one that is down for long is told of once
                    log.warning("the runtime is away; dialing again", socket=self._socket, why=error)
                reason = str(error)
                self._wake.wait(next(delays))

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def _look_on(self, looker: Looker, before: Snapshot) -> None:
        announcing = False
        while not self._stopping:
            self._wake.wait(RELIST_S if announcing else POLL_S)
            self._wake.clear()
            announced, self._announced = self._announced, False
            after = looker.look()
            announcing = announced or (announcing and after == before)
            if after != before:
                self._tell(after)
            before = after

    def _listen_to(self, runtime: Runtime) -> None:
        """Before the first look, so that nothing falls between. The thread ends with the connection."""
        version = runtime.version()
        log.info("following", runtime=version.name, version=version.version, events=version.broadcasts)
        if version.broadcasts:
            threading.Thread(target=self._listen, args=(runtime,), daemon=True).start()

    def _listen(self, runtime: Runtime) -> None:
        for _ in runtime.events():
            self._announced = True
            self._wake.set()
