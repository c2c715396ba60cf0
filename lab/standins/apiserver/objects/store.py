"""Revisioned storage, as etcd and the watch cache give it: every change has its revision, the past can be listed and
replayed until it is forgotten.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.standins.apiserver.model.kinds import Kind

Name = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name: the order of lists."""

Owners = dict[str, frozenset[tuple[str, ...]]]
"""Of one object: the fields that each manager has applied."""

_SNAPSHOTS_KEPT = 4
HISTORY = 200_000
"""The most changes remembered: past twice as many, the older half is forgotten."""


@dataclass(frozen=True)
class Stored:
    """One version of one object. The object is never changed once stored."""

    object: Mapping[str, Any]
    revision: int

    @cached_property
    def text(self) -> bytes:
        return compact(self.object)

    @cached_property
    def item_text(self) -> bytes:
        """As in a list of a built-in kind: without kind and apiVersion."""
        return compact({key: value for key, value in self.object.items() if key not in ("kind", "apiVersion")})


@dataclass(frozen=True)
class Change:
    """One step of history. `before` None: created. `after` None: deleted, and `last` is the object as it was, with the
    deletion's revision.
    """

    revision: int
    key: tuple[str, str]
    name: Name
    before: Stored | None
    after: Stored | None
    last: Stored | None = None


class Store:
    """All objects of all kinds. `changed` is notified on every change, and may be notified by others to wake the
    watches.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.revision = 1
        self._objects: dict[tuple[str, str], dict[Name, Stored]] = {}
        self._owners: dict[tuple[tuple[str, str], Name], Owners] = {}
        self._history: list[Change] = []
        self._forgotten = self.revision
        self._snapshots: dict[tuple[tuple[str, str], int], list[tuple[Name, Stored]]] = {}

    def get(self, kind: Kind, name: Name) -> Stored | None:
        with self.changed:
            return self._objects.get(kind.key, {}).get(name)

    def owners(self, kind: Kind, name: Name) -> Owners:
        """To be changed in place."""
        return self._owners.setdefault((kind.key, name), {})

    def put(self, kind: Kind, name: Name, body: Mapping[str, Any]) -> Stored:
        """Stores the object under the next revision, which it also gets as its resourceVersion."""
        with self.changed:
            self.revision += 1
            stored = Stored(_with_revision(body, self.revision), self.revision)
            objects = self._objects.setdefault(kind.key, {})
            self._record(Change(self.revision, kind.key, name, objects.get(name), stored))
            objects[name] = stored
            return stored

    def delete(self, kind: Kind, name: Name) -> Stored:
        """The object as it was, with the deletion's revision; KeyError when there is none."""
        with self.changed:
            before = self._objects[kind.key].pop(name)
            self._owners.pop((kind.key, name), None)
            self.revision += 1
            last = Stored(_with_revision(before.object, self.revision), self.revision)
            self._record(Change(self.revision, kind.key, name, before, None, last))
            return last

    def snapshot(self, kind: Kind, revision: int) -> list[tuple[Name, Stored]] | None:
        """Every object of the kind as it was at that revision, in order of name; None when that is forgotten."""
        with self.changed:
            if revision < self._forgotten:
                return None
            cached = self._snapshots.get((kind.key, revision))
            if cached is None:
                cached = sorted(self._at(kind, revision).items())
                self._snapshots[(kind.key, revision)] = cached
                while len(self._snapshots) > _SNAPSHOTS_KEPT:
                    del self._snapshots[next(iter(self._snapshots))]
            return cached

    def after(self, kind: Kind, revision: int) -> Iterator[Change] | None:
        """The kind's changes after that revision; None when that part of the past is forgotten."""
        with self.changed:
            if revision < self._forgotten:
                return None
            recent = self._history[revision - self._forgotten :]
            return (change for change in recent if change.key == kind.key and change.revision > revision)

    def forget(self, revision: int) -> None:
        """What a restart of the API server does after a compaction: no watch, token or list may refer to an older
        revision.
        """
        with self.changed:
            now_forgotten = min(max(revision, self._forgotten), self.revision)
            del self._history[: now_forgotten - self._forgotten]
            self._forgotten = now_forgotten
            self._snapshots.clear()
            self.changed.notify_all()

    def rewind(self, revision: int) -> None:
        """What a restore from a backup does: the objects are there, and revisions count on from a lower one."""
        with self.changed:
            for objects in self._objects.values():
                for name, stored in objects.items():
                    objects[name] = Stored(_with_revision(stored.object, revision), revision)
            self.revision = self._forgotten = revision
            self._history.clear()
            self._snapshots.clear()
            self.changed.notify_all()

    def _at(self, kind: Kind, revision: int) -> dict[Name, Stored]:
        objects = dict(self._objects.get(kind.key, {}))
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            if change.key != kind.key:
                continue
            if change.before is None:
                objects.pop(change.name, None)
            else:
                objects[change.name] = change.before
        return objects

    def _record(self, change: Change) -> None:
        self._history.append(change)
        if len(self._history) > 2 * HISTORY:
            self.forget(self._history[HISTORY].revision)
        self.changed.notify_all()


def _with_revision(body: Mapping[str, Any], revision: int) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(revision)}}


def compact(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
