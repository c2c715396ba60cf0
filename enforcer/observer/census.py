"""Whether the runtime tells us of every container that runs, asked of the kernel.

A runtime that has forgotten us may leave our connection open, and before NRI 0.12.1 it can't be asked: what is left are
its events, and a node may be quiet for days. But containers that run without ever having been told are a proof, and a
pod's cgroup holds a folder for each of its containers and one for its pause container, if it has that. So where there
are two folders more than containers that were told, the runtime has forgotten us; or those containers are not its own,
and then it goes on without a word of them once we have registered anew. So each is reported once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.errors import MachineError
from process.log import Log
from process.threads import Threads
from proto import local_pb2 as local

log = Log("observer.census")

EVERY_S = 30.0
"""What is there at two looks in a row was not told of for as long."""

STALE_AFTER_S = 4 * EVERY_S

MOST_REMEMBERED = 8_192
"""Containers, of those that were told of and those that were reported; the oldest are forgotten first."""

_ID = re.compile(r"(?:.*-)?([0-9a-f]{64})(?:\.scope)?")
"""A container's folder, by either cgroup driver."""


class Census:
    """A thread of its own. untold: called with the ids of containers that run without having been told of."""

    def __init__(self, tree: CgroupTree, untold: Callable[[list[str]], None], threads: Threads) -> None:
        self._tree, self._report = tree, untold
        self._told: dict[str, str] = {}
        self._before: frozenset[str] = frozenset()
        self._reported: dict[str, None] = {}
        self.untold = 0
        """At the last two looks."""
        self._thread = threads.thread("census", self._round, stale_after_s=STALE_AFTER_S)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 0.0) -> None:
        self._thread.stop(timeout_s)

    @property
    def alive(self) -> bool:
        return self._thread.alive

    def hear(self, message: local.Containers) -> None:
        """One that has gone stays known: its cgroup may outlive the runtime's word of its end."""
        told = self._told | {container.id: container.cgroups_path for container in message.containers}
        self._told = dict(list(told.items())[-MOST_REMEMBERED:])

    def look(self) -> None:
        """Reports what was there at the look before, too."""
        now = frozenset(self._unknown())
        both = now & self._before
        self._before, self.untold = now, len(both)
        news = sorted(both.difference(self._reported))
        if news:
            self._reported = dict.fromkeys([*self._reported, *news][-MOST_REMEMBERED:])
            log.warning("containers run that the runtime never told of", containers=len(news), first=news[0][:12])
            self._report(news)

    def _round(self) -> None:
        self._thread.stopping.wait(EVERY_S)
        if not self._thread.stopping.is_set():
            self.look()

    def _unknown(self) -> Iterator[str]:
        told = self._told
        for parent in self._parents(told.values()):
            for pod in _folders(parent):
                there = {found[1]: folder for folder in _folders(pod) if (found := _ID.fullmatch(folder.name))}
                unknown = [one for one, folder in there.items() if one not in told and _populated(folder)]
                if len(unknown) > 1:
                    yield from unknown

    def _parents(self, paths: Iterable[str]) -> set[Path]:
        """The folders of pods' folders: one for each QoS class, as far as containers of it are known."""
        found = set()
        for path in paths:
            try:
                folder = self._tree.folder(path)
            except MachineError:
                continue
            if folder is not None and len(folder.parents) > 2:
                found.add(folder.parent.parent)
        return found


def _folders(above: Path) -> list[Path]:
    try:
        return [one for one in above.iterdir() if one.is_dir()]
    except OSError:  # it has gone meanwhile
        return []


def _populated(folder: Path) -> bool:
    """Whether a process is in it, or below."""
    try:
        return bool((folder / "cgroup.procs").read_text().strip()) or any(map(_populated, _folders(folder)))
    except OSError:
        return False
