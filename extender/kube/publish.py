"""Keeps objects at the API server as they should be, by server-side apply: what differs from what was last applied is
applied, and nothing else. What should be no more is deleted, as it was seen or not at all.

Another owner's fields are respected: an apply is never forced, and an object on which another manager owns what we
would write is left to it. A kind that the cluster does not have is asked for again after a while. One replica
publishes; a new one applies everything once, which changes nothing where all is right already.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from http import HTTPStatus
from itertools import chain, islice, zip_longest
from typing import Any

from extender.kube.api import Api, ApiError, Unreachable
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads

MANAGER = "numakin"
LEARNED = "numakin-learned"
EVERY_S = 5.0
LONGEST_DEFERRED_S = 15.0
"""How long a round waits for pods to have been scheduled: each object takes as much of the API server as a pod."""
DEFERRED_S = 0.1
"""Between two looks whether they have been."""
PER_ROUND = 100
"""Objects applied in one round; the rest wait for the next one: 20 a second is what a cluster of 5,000 nodes can ask of
its API server.
"""
ASIDE_S = 600.0
"""How long an object that another manager owns is left alone before it is tried again."""
ABSENT_S = 300.0
"""How long a kind that is not served is left alone."""

STALE_AFTER_S = 120.0
"""Without one object done, or nothing to do."""

AGAIN_S = 30.0
"""How long an object is left alone after a failure of the API server itself, and where it was gone when written."""

_UNSERVED = "the server could not find the requested resource"

_log = Log(__name__)

UNSEEN_S = 30.0
"""How long an object that was made need not be shown by the watch. One that is not seen by then was deleted in between,
and is made anew.
"""


@dataclass(frozen=True)
class Desired:
    """An object as it should be. path: of the object. status: applied to its status subresource, after `body`.

    learned: a part of the status that outlives the extender: it is applied by a manager of its own, so that a
    status that comes without it does not take it away. uid: of the object that is there, empty where none is, so that
    one that was deleted is applied anew; None where that is not followed.
    """

    path: str
    body: Mapping[str, Any]
    status: Mapping[str, Any] | None = None
    learned: Mapping[str, Any] | None = None
    uid: str | None = None

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @cached_property
    def digest(self) -> bytes:
        text = json.dumps([self.body, self.status, self.learned, self.uid], sort_keys=True)
        return blake2b(text.encode(), digest_size=16).digest()


@dataclass(frozen=True)
class Unwanted:
    """An object that should be no more, unless it is another one by now (uid), or was changed (revision)."""

    path: str
    uid: str
    revision: str


@dataclass
class AppliedDigests:
    """What was applied, by its digests, each with until when it counts, and what is left alone until when: an object by
    its uid too, since what was refused of one says nothing of another in its place.
    """

    applied: dict[str, dict[bytes, float]] = field(default_factory=dict)
    aside: dict[str, tuple[str | None, float]] = field(default_factory=dict)
    absent: dict[str, float] = field(default_factory=dict)

    def due(self, desired: Iterable[Desired | Unwanted], now: float) -> list[Desired | Unwanted]:
        """What to apply or delete now, at most PER_ROUND; what is no longer desired is forgotten.

        The kinds take turns: what was learned of a few groups does not wait for the objects of thousands of nodes.
        """
        wanted = {item.path: item for item in desired}
        self.applied = {path: digests for path, digests in self.applied.items() if path in wanted}
        self.aside = {path: left for path, left in self.aside.items() if path in wanted}
        due: dict[str, list[Desired | Unwanted]] = {}
        for item in wanted.values():
            if not self._left_alone(item, now) and (isinstance(item, Unwanted) or self._differs(item, now)):
                due.setdefault(item.kind if isinstance(item, Desired) else "", []).append(item)
        turns = chain.from_iterable(zip_longest(*due.values()))
        return [*islice((turn for turn in turns if turn is not None), PER_ROUND)]

    def _left_alone(self, item: Desired | Unwanted, now: float) -> bool:
        uid, until = self.aside.get(item.path, (None, 0.0))
        return uid == item.uid and until > now

    def _differs(self, item: Desired, now: float) -> bool:
        applied = self.applied.get(item.path, {})
        if item.uid and item.digest in applied:
            self.applied[item.path] = {item.digest: math.inf}
        return self.absent.get(item.kind, 0) <= now and applied.get(item.digest, 0) <= now


class Publisher(Threaded):
    """Asks `source` what should be, every few seconds, while this replica is the one to publish. leads_since: since
    when it is, without a break, as another may have published before; infinite: it is not. busy: whether this is no
    good time, as pods are being scheduled; a round waits for a better one, and ends where it becomes none, but not for
    long.
    """

    def __init__(
        self,
        api: Api,
        source: Callable[[], Iterable[Desired | Unwanted]],
        leads_since: Callable[[], float] = lambda: 0.0,
        *,
        busy: Callable[[], bool] = lambda: False,
        every_s: float = EVERY_S,
        threads: Threads,
    ) -> None:
        self.published = 0
        self._api = api
        self._source = source
        self._leads_since, self._busy = leads_since, busy
        self._every_s = every_s
        self._ledger, self._began = AppliedDigests(), 0.0
        self._until, self._overdue = math.inf, True
        self._thread = threads.thread("publisher", self._round, last=self._reachable_round, stale_after_s=STALE_AFTER_S)

    @property
    def left_to_others(self) -> int:
        """Objects that another manager owns."""
        return len(self._ledger.aside)

    def stop(self, timeout_s: float = 10.0) -> None:
        """After a last round over what should be, as far as the time allows."""
        self._until = time.monotonic() + timeout_s
        self._thread.stop(timeout_s)

    def _round(self) -> None:
        self._reachable_round()
        self._thread.stopping.wait(self._every_s)
        latest = time.monotonic() + LONGEST_DEFERRED_S
        while self._busy() and time.monotonic() < latest and not self._thread.stopping.wait(DEFERRED_S):
            pass
        self._overdue = self._busy()

    def _reachable_round(self) -> None:
        try:
            self.round()
        except Unreachable as bad:
            _log.warning("not published", error=str(bad))

    def round(self) -> None:
        """One round over what should be. Unreachable when the API server is: the rest would not fare better, nor where
        that has too much to do. It ends where another replica publishes by now: what this one has in mind may be older
        than what that has written.
        """
        if (began := self._leads_since()) != self._began:
            self._ledger, self._began = AppliedDigests(), began
        if began == math.inf:
            return
        for item in self._ledger.due(self._source(), time.monotonic()):
            if time.monotonic() > self._until or self._interrupted or self._leads_since() == math.inf:
                return
            try:
                if isinstance(item, Unwanted):
                    self._delete(item)
                elif self._ledger.absent.get(item.kind, 0) <= time.monotonic():
                    self._apply(item)
            except ApiError as refused:
                self._note(item, refused)
                if refused.code == HTTPStatus.TOO_MANY_REQUESTS and not self._thread.stopping.is_set():
                    return
            self._thread.progress()

    @property
    def _interrupted(self) -> bool:
        """Whether pods have begun to be scheduled, in a round that may be put off."""
        return not self._overdue and not self._thread.stopping.is_set() and self._busy()

    def _apply(self, item: Desired) -> None:
        made = self._api.apply(item.path, item.body, manager=MANAGER, force=False)
        identity = {name: item.body[name] for name in ("apiVersion", "kind", "metadata")}
        for manager, status in ((MANAGER, item.status), (LEARNED, item.learned)):
            if status is not None:
                self._api.apply(f"{item.path}/status", {**identity, "status": status}, manager=manager, force=False)
        # A new object as the source will have it once the watch has shown it; any other as it is, for good.
        seen = replace(item, uid=made.json().get("metadata", {}).get("uid", "")) if item.uid == "" else item
        self._ledger.applied[item.path] = {item.digest: time.monotonic() + UNSEEN_S, seen.digest: math.inf}
        self._ledger.aside.pop(item.path, None)
        self.published += 1

    def _delete(self, item: Unwanted) -> None:
        preconditions = {"uid": item.uid, "resourceVersion": item.revision}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        self._api.request("DELETE", item.path, body=body)
        self._ledger.applied.pop(item.path, None)

    def _note(self, item: Desired | Unwanted, refused: ApiError) -> None:
        now = time.monotonic()
        if isinstance(item, Desired) and refused.code == 404 and _unserved(refused):
            self._ledger.absent[item.kind] = now + ABSENT_S
            _log.info("kind not served: not published", kind=item.kind)
            return
        # Not found: it is being deleted just now.
        left_s = max(AGAIN_S, refused.retry_after_s) if refused.passing or refused.code == 404 else ASIDE_S
        self._ledger.aside[item.path] = item.uid, now + left_s
        what = "left to its other owner" if refused.code == 409 else "not published"
        _log.warning(what, path=item.path, error=str(refused))


def _unserved(refused: ApiError) -> bool:
    """The kind, that is: a namespace that is gone is answered with NotFound and its name."""
    return refused.reason != "NotFound" or _UNSERVED in str(refused)
