"""Watches of kinds that a cluster may be without: each begins once the API server has its kind.

One question for all of them at a time, now and then: a kind that is not there costs nothing, and is logged once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.objects.told_kinds import ToldKind
from extender.kube.watch import ListWatch, Pace
from extender.state.pods import Changes
from extender.state.told_groups import ToldRow
from numakin.process.log import Log
from numakin.process.threads import IDLE, Backoff, Threaded, Threads, running

AGAIN_S = 300.0
"""Until the API server is asked again for what it did not have: a definition may be installed later."""

AFTER_FAILURE_S = 15.0

_log = Log("apiserver")

Deliver = Callable[[str, Changes[ToldRow]], None]
"""Takes a kind's name, and what changed of it."""


class OptionalKinds(Threaded):
    """deliver: called on each kind's own thread."""

    def __init__(self, api: Api, kinds: Sequence[ToldKind], deliver: Deliver, *, threads: Threads) -> None:
        self._api, self._kinds, self._deliver, self._threads = api, kinds, deliver, threads
        self._watches: dict[str, ListWatch[ToldRow]] = {}
        self._absent: set[str] = set()
        self._thread = threads.thread("optional kinds", self._round, stale_after_s=2 * AGAIN_S)

    @property
    def watched(self) -> list[str]:
        return sorted(self._watches)

    def stop(self, timeout_s: float = 10.0) -> None:
        self._thread.stop(timeout_s)
        for watch in [*self._watches.values()]:
            watch.stop(timeout_s)

    def _round(self) -> object:
        try:
            served = {*self._served()}
        except (ApiError, Unreachable, msgspec.MsgspecError) as bad:
            _log.debug("not known which kinds there are", error=str(bad))
            self._thread.stopping.wait(AFTER_FAILURE_S)
            return IDLE
        absent = []
        for kind in self._kinds:
            if kind.path in served:
                self._watch(kind)
            elif kind.kind not in self._absent:
                self._absent.add(kind.kind)
                absent.append(f"{kind.kind}/{kind.version}")
        if absent:
            _log.info("the API server has no such kinds: what they would say of groups is not known", kinds=absent)
        self._thread.stopping.wait(AGAIN_S)
        return IDLE

    def _watch(self, kind: ToldKind) -> None:
        if kind.kind in self._watches or self._thread.stopping.is_set():
            return
        pace = Pace(Backoff(longest_s=AGAIN_S), outage_s=AGAIN_S)
        watch = ListWatch(
            self._api, kind.resource(), lambda changes: self._deliver(kind.kind, changes), pace, threads=self._threads
        )
        self._watches[kind.kind] = running(watch)

    def _served(self) -> Iterator[str]:
        """The paths of those kinds that the API server has."""
        groups = {
            version.group_version
            for group in _GROUPS.decode(self._api.get("/apis").body).groups
            for version in group.versions
        }
        for wanted in sorted({f"{kind.group}/{kind.version}" for kind in self._kinds} & groups):
            listed = _RESOURCES.decode(self._api.get(f"/apis/{wanted}").body)
            yield from (f"/apis/{wanted}/{found.name}" for found in listed.resources)


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _ApiGroup(msgspec.Struct):
    versions: list[_Version]


class _ApiGroups(msgspec.Struct):
    groups: list[_ApiGroup]


class _ApiResource(msgspec.Struct):
    name: str


class _ApiResources(msgspec.Struct):
    resources: list[_ApiResource]


_GROUPS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_ApiGroups)
_RESOURCES: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_ApiResources)
