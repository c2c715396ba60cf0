"""List and watch: one thread that keeps a view of pods or nodes current, whatever the API server and the network do.

The rules, each with its test:
- list in pages, all at one revision; then watch from that revision, with bookmarks, for at most WATCH_S;
- a watch that ends, breaks or falls silent is taken up again from the last revision seen: nothing is lost, and nothing
  listed again;
- a revision too old (410, as an answer or in the stream) is listed anew, and so is one that does not seem to exist: a
  watch that ran its whole time without even a bookmark (an API server restored from a backup stays silent about
  revisions that it has not reached);
- after a failure it waits, longer each time, with jitter, and at least as long as Retry-After says; a watch that
  brought something, or a failure of another kind, starts the count anew;
- three failures in a row without progress: list anew.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic

import urllib3

from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.rows import UNREADABLE
from extender.kube.stream import BadFrame, Lines, Page, Resource, Row, reduce
from extender.state.pods import Changes
from numakin.process.log import Log
from numakin.process.threads import Backoff, Threaded, Threads

PAGE = 500
"""Objects per page of a list, as client-go asks for."""
WATCH_S = 300
PATIENCE_S = 30
"""How long past its end a watch may be silent before its connection counts as dead."""
LIST_S = 120
"""For the pages of a list, as far as it matters to whether the thread gets anywhere."""
RELIST_AFTER = 3
GONE, ABSENT = 410, 404
OUTAGE_S = 5.0
"""The longest wait while the API server can't be reached or refuses: what is bound meanwhile is not seen. A kind that
the cluster does not have is asked for as rarely as `Pace.backoff` says.
"""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Waits after failures: those of `backoff`, of which a random half is left out, and what Retry-After asks for.
    outage_s: the longest while the API server can't be reached or refuses.
    """

    backoff: Backoff = field(default_factory=Backoff)
    watch_s: int = WATCH_S
    patience_s: float = PATIENCE_S
    outage_s: float = OUTAGE_S

    def wait_s(self, failures: int, at_least_s: float = 0.0, at_most_s: float = math.inf) -> float:
        """failures: of one kind in a row. at_most_s: bounds what is doubled, not what is asked for."""
        whole_s = min(at_most_s, self.backoff.wait_s(failures))
        return at_least_s + whole_s * random.uniform(0.5, 1.0)  # noqa: S311 - jitter


@dataclass(frozen=True, slots=True)
class Standing:
    """How a watch stands. seen: monotonic time at which the view was last known to be current."""

    synced: bool = False
    seen: float = 0.0
    revision: str = ""
    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    error: str = ""


class ListWatch(Threaded, Generic[Row]):
    """Hands every change to `deliver`, on its own thread and in order; the first is whole, and so is each after a new
    list.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource[Row],
        deliver: Callable[[Changes[Row]], None],
        pace: Pace = Pace(),
        *,
        threads: Threads,
    ) -> None:
        self.synced = threading.Event()
        self.standing = Standing(seen=time.monotonic())
        self._api = api
        self._resource = resource
        self._deliver = deliver
        self._pace = pace
        self._page = PAGE
        self._response: urllib3.BaseHTTPResponse | None = None
        self._revision, self._failures = "", 0
        self._code, self._alike = 0, 0
        self._thread = threads.thread(
            f"watch {resource.path}",
            self._round,
            # A round is a list and a whole watch, or a wait.
            stale_after_s=pace.watch_s + pace.patience_s + pace.backoff.longest_s + LIST_S,
            backoff=pace.backoff,
        )

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ends the thread, also out of a silent connection."""
        self._thread.stop()
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):  # when it has ended by itself meanwhile
                response.shutdown()
        self._thread.stop(timeout_s)

    @property
    def age_s(self) -> float:
        """Seconds since the view was last known to be current; up to a minute while all is well and nothing happens."""
        return time.monotonic() - self.standing.seen

    def _round(self) -> None:
        """A list where one is due, and a watch. What the API server is to blame for is waited out here; after anything
        else all is listed anew.
        """
        before = self.standing.events
        try:
            self._revision = self._revision or self._list()
            self._revision = self._watch(self._revision)
            self._failures = self._alike = 0
        except (ApiError, Unreachable, BadFrame) as bad:
            self._count(bad, progress=self.standing.events > before)
            if gone := isinstance(bad, ApiError) and bad.code == GONE:
                self._lost()
            anew = gone or self._failures % RELIST_AFTER == 0
            self._revision = "" if anew else (self.standing.revision or self._revision)
            self._wait(bad)
        except Exception as bad:
            self._revision = self._lost()
            self.standing = replace(self.standing, failures=self.standing.failures + 1, error=str(bad))
            raise

    def _list(self) -> str:
        """Delivers everything there is; the revision of it."""
        rows: list[Row] = []
        rest = ""
        while True:
            query = {**self._resource.query, "limit": str(self._page), **({"continue": rest} if rest else {})}
            page = self._page_of(query)
            rows += page.rows
            rest = page.rest
            if not rest:
                break
        self._deliver(Changes(rows=tuple(rows), whole=True))
        self._page = PAGE
        standing = self.standing
        self.standing = replace(
            standing,
            synced=True,
            seen=time.monotonic(),
            revision=page.revision,
            lists=standing.lists + 1,
            error="",
        )
        self.synced.set()
        return page.revision

    def _page_of(self, query: dict[str, str]) -> Page[Row]:
        try:
            answer = self._api.get(self._resource.path, query)
            return self._resource.page(answer.body)
        except UNREADABLE as bad:
            raise BadFrame(f"{self._resource.path}: no list: {bad}: {answer.body[:100]!r}") from bad
        except ApiError as refused:
            if refused.code == GONE:
                # The list took longer than the server remembers: fewer pages next time.
                self._page *= 8
            raise

    def _watch(self, revision: str) -> str:
        """Follows one watch to its end; the revision to go on from, empty when that must be listed anew."""
        query = {
            **self._resource.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": revision,
            "timeoutSeconds": str(self._pace.watch_s),
        }
        lines, received = Lines(), False
        started = time.monotonic()
        with self._api.stream(self._resource.path, query, self._pace.watch_s + self._pace.patience_s) as response:
            self._response = response
            if self._thread.stopping.is_set():
                return revision
            self.standing = replace(self.standing, watches=self.standing.watches + 1, error="")
            try:
                for data in response.stream(65536, decode_content=False):
                    self._take(lines.feed(data))
                    received = True
            finally:
                self._response = None
        if self._thread.stopping.is_set() or received:
            return self.standing.revision
        if time.monotonic() - started < self._pace.watch_s / 2:
            raise Unreachable("the watch ended early, with nothing received")
        return self._lost()

    def _lost(self) -> str:
        """Nothing can be taken up from the last revision, also where the list that is due now fails."""
        self.standing = replace(self.standing, revision="")
        return ""

    def _take(self, lines: list[bytes]) -> None:
        batch = reduce(self._resource, lines)
        if batch.changes is not None:
            self._deliver(batch.changes)
        standing = self.standing
        self.standing = replace(
            standing,
            seen=time.monotonic(),
            revision=batch.revision or standing.revision,
            events=standing.events + batch.events,
        )
        self._thread.progress()

    def _count(self, bad: Exception, *, progress: bool) -> None:
        """Failures in a row; and those that are alike, since an API server that has just started refuses (403) before
        it says what is gone (410), and neither is to wait for as long as the outage before made it wait.
        """
        code = bad.code if isinstance(bad, ApiError) else 0
        self._failures = 1 if progress else self._failures + 1
        self._alike = 1 if progress or code != self._code else self._alike + 1
        self._code = code

    def _wait(self, bad: Exception) -> None:
        if self._thread.stopping.is_set():
            return
        at_least_s = bad.retry_after_s if isinstance(bad, ApiError) else 0.0
        # The first 410 is the ordinary end of a long silence: listing anew at once is right.
        at_once = self._code == GONE and self._alike == 1
        at_most_s = math.inf if self._code == ABSENT else self._pace.outage_s
        wait_s = 0.0 if at_once else self._pace.wait_s(self._alike, at_least_s, at_most_s)
        self.standing = replace(self.standing, failures=self.standing.failures + 1, error=str(bad))
        _log.warning("watch interrupted", path=self._resource.path, error=str(bad), again_in_s=round(wait_s, 1))
        self._thread.stopping.wait(wait_s)
