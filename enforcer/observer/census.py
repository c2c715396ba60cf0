"""Whether the runtime reports every container that runs, as the kernel shows them.

A runtime that has forgotten us may leave our connection open, and before NRI 0.12.1 it can't be asked: what is left are
its events, and a node may be quiet for days. But containers that run without ever having been reported are a proof, and
a pod's cgroup holds a folder for each of its containers and one for its pause container, if it has that. So where there
are two folders more than containers that were reported, the runtime has forgotten us; or those containers are not its
own, and then it goes on without reporting them once we have registered again. So each is named once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads
from numakin.wire import local_pb2 as local

log = Log("observer.census")

EVERY_S = 30.0
"""Between two polls: what two in a row find was not reported for as long."""

STALE_AFTER_S = 4 * EVERY_S

MOST_REMEMBERED = 8_192
"""Containers, of those whose end the runtime reported and those that were named; the oldest are forgotten first."""

_ID = re.compile(r"(?:.*-)?([0-9a-f]{64})(?:\.scope)?")
"""A container's folder, by either cgroup driver."""


class Census(Threaded):
    """A thread of its own. untold: called with the ids of containers that run without having been reported."""

    def __init__(self, tree: CgroupTree, untold: Callable[[list[str]], None], threads: Threads) -> None:
        self._tree, self._report = tree, untold
        self._lock = threading.Lock()
        self._live: dict[str, str] = {}
        self._gone: dict[str, str] = {}
        self._before: frozenset[str] = frozenset()
        self._reported: dict[str, None] = {}
        self.untold = 0
        """At the last two polls."""
        self._thread = threads.thread("census", self._round, stale_after_s=STALE_AFTER_S)

    def received(self, message: local.Containers) -> None:
        """One that has gone stays known: its cgroup may outlive the runtime's report of its end."""
        with self._lock:
            for key in [*self._live] if message.whole else message.gone:
                if (path := self._live.pop(key, None)) is not None:
                    self._gone[key] = path
            while len(self._gone) > MOST_REMEMBERED:
                del self._gone[next(iter(self._gone))]
            self._live.update((container.id, container.cgroups_path) for container in message.containers)

    def poll(self) -> None:
        """Names what was there at the poll before, too."""
        now = frozenset(self._unknown())
        both = now & self._before
        self._before, self.untold = now, len(both)
        unreported = sorted(both.difference(self._reported))
        if unreported:
            self._reported = dict.fromkeys([*self._reported, *unreported][-MOST_REMEMBERED:])
            log.warning(
                "containers run that the runtime never reported", containers=len(unreported), first=unreported[0][:12]
            )
            self._report(unreported)

    def _round(self) -> None:
        self._thread.stopping.wait(EVERY_S)
        if not self._thread.stopping.is_set():
            self.poll()

    def _unknown(self) -> Iterator[str]:
        with self._lock:
            known = self._gone | self._live
        for parent in self._parents(known.values()):
            for pod in _folders(parent):
                there = {match[1]: folder for folder in _folders(pod) if (match := _ID.fullmatch(folder.name))}
                unknown = [
                    container for container, folder in there.items() if container not in known and _populated(folder)
                ]
                if len(unknown) > 1:
                    yield from unknown

    def _parents(self, paths: Iterable[str]) -> set[Path]:
        """The folders of pods' folders: one for each QoS class, as far as containers of it are known."""
        parents = set()
        for path in paths:
            try:
                folder = self._tree.folder(path)
            except MachineError:
                continue
            if folder is not None and len(folder.parents) > 2:
                parents.add(folder.parent.parent)
        return parents


def _folders(above: Path) -> list[Path]:
    try:
        return [entry for entry in above.iterdir() if entry.is_dir()]
    except OSError:  # it has gone meanwhile
        return []


def _populated(folder: Path) -> bool:
    """Whether a process is in it, or below."""
    try:
        return bool((folder / "cgroup.procs").read_text().strip()) or any(map(_populated, _folders(folder)))
    except OSError:
        return False
