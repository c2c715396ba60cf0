"""Follows a container runtime over CRI: connects, polls whenever something happened, connects again.

Events say when to poll, never what is there: one that is lost costs time, no more. A runtime that has none, or none
that we may subscribe to, is polled every POLL_S; one whose events are received, every RELIST_S besides. A poll that
finds what no event announced means that events get lost, so it is every POLL_S again until the next; so it is once
their stream has ended, which is how a runtime that goes away is missed at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from enforcer.bypass.changes import RuntimeSnapshot
from enforcer.bypass.cri_client import CriClient, RuntimeAway
from enforcer.bypass.polling import RuntimePoller
from enforcer.nri.transport import backoff
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads

log = Log("bypass.follow")

POLL_S = 0.25
"""A poll of 200 containers costs us 0.8 ms of CPU."""

RELIST_S = 10.0

FIRST_POLLS = 40
"""Times, over ten seconds, that a runtime is asked for what it lists and can't describe; then it is followed anyway."""


class Follower(Threaded):
    """A thread of its own. send: receives every poll's result, None when the runtime is lost."""

    def __init__(
        self,
        socket: str,
        procfs: Path,
        send: Callable[[RuntimeSnapshot | None], None],
        threads: Threads,
        *,
        relist_s: float = RELIST_S,
    ) -> None:
        self._socket, self._procfs, self._send, self._threads = socket, procfs, send, threads
        self._relist_s = relist_s
        self._wake = threading.Event()
        self._announced = self._silenced = False
        self._delays, self._reason = backoff(), ""
        self._thread = threads.thread("follower", self._round, wake=self._wake.set)

    @property
    def stale(self) -> bool:
        return self._thread.standing().stale

    def _round(self) -> None:
        """One connection, for as long as it lasts."""
        try:
            with CriClient(self._socket) as runtime:
                self._follow(runtime)
        except RuntimeAway as error:
            self._send(None)
            if str(error) != self._reason:  # one that is down for long is logged once
                log.warning("the runtime is away; dialing again", socket=self._socket, why=error)
            self._reason = str(error)
            self._wake.wait(next(self._delays))
            self._wake.clear()
        except Exception:
            self._send(None)
            raise

    def _follow(self, runtime: CriClient) -> None:
        version = runtime.version()
        log.info("following", runtime=version.name, version=version.version, events=version.broadcasts)
        # A stream of events may be silent for ever: what shows that it is lost are the polls.
        listener = self._threads.thread("runtime events", partial(self._listen, runtime), stale_after_s=math.inf)
        if version.broadcasts:
            listener.start()  # before the first poll, so that nothing falls between
        try:
            poller = RuntimePoller(runtime, self._procfs)
            first = self._first(poller)
            self._send(first)
            self._delays, self._reason = backoff(), ""
            self._poll_on(poller, first)
        finally:
            listener.stop()

    def _first(self, poller: RuntimePoller) -> RuntimeSnapshot:
        """Of all that runs: what it leaves out is taken for ended, and comes as a newcomer later."""
        for _ in range(FIRST_POLLS):
            snapshot = poller.poll()
            if poller.whole or self._thread.stopping.wait(POLL_S):
                return snapshot
        log.warning("the runtime lists what it can't describe: that is left alone until it can", socket=self._socket)
        return snapshot

    def _poll_on(self, poller: RuntimePoller, before: RuntimeSnapshot) -> None:
        announcing = False
        while not self._thread.stopping.is_set():
            self._wake.wait(self._relist_s if announcing else POLL_S)
            self._wake.clear()
            announced, self._announced = self._announced, False
            silenced, self._silenced = self._silenced, False
            after = poller.poll()
            was_stale = self.stale  # the runtime was taken for away meanwhile
            self._thread.progress()
            announcing = not silenced and (announced or (announcing and after == before))
            if after != before or was_stale:
                self._send(after)
            before = after

    def _listen(self, runtime: CriClient) -> None:
        """Until the stream ends: with the connection, or before it; then it is opened again."""
        for _ in runtime.events():
            self._announced = True
            self._wake.set()
        self._silenced = True
        self._wake.set()
        self._thread.stopping.wait(self._relist_s)
