"""WATCH: which frames a watch sends, and when it ends. How frames travel is http.py's matter."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from lab.standins.apiserver.faults import Fault
from lab.standins.apiserver.model import refusals, selectors
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects.store import Change, Store, Stored

LONGEST_S = 1800.0
"""How long a watch without timeoutSeconds lasts; the real server takes 30 to 60 minutes, at random."""

BOOKMARK_EVERY_S = 60.0

BEFORE_END_S = 2.0
"""Bookmarks come this long before timeoutSeconds, as recorded (once or twice in the last 2.5 s)."""

Frame = bytes


class Watch:
    """One watch. Iterate it for its frames; it waits on the store in between.

    `break_with` has it stopped by a fault: http.py reads `fault` after the last frame.
    """

    def __init__(self, store: Store, request: Request) -> None:
        self.request = request
        self.fault: Fault | None = None
        self.ended = False
        self.sent = 0
        self._store = store
        self._kind = request.kind
        self._chosen = selectors.predicate(
            request.kind, request.query.get("fieldSelector", ""), request.query.get("labelSelector", "")
        )
        self._revision = _start_revision(request)
        self._extra: deque[Frame] = deque()
        now = time.monotonic()
        self._end = now + _timeout_s(request)
        self._next_bookmark = min(now + BOOKMARK_EVERY_S, max(now, self._end - BEFORE_END_S))

    def __iter__(self) -> Iterator[list[Frame]]:
        """Batches of frames, as they come; ends at timeoutSeconds, by a fault, or after an ERROR frame."""
        initial = self._initial()
        if initial:
            yield initial
        while not self.ended and self.fault is None:
            batch = self._next()
            if batch:
                yield batch

    def break_with(self, fault: Fault) -> None:
        with self._store.changed:
            self.fault = fault
            self._store.changed.notify_all()

    def push(self, *frames: Frame) -> None:
        """Sends these frames, whatever they are."""
        with self._store.changed:
            self._extra.extend(frames)
            self._store.changed.notify_all()

    def end(self) -> None:
        with self._store.changed:
            self.ended = True
            self._store.changed.notify_all()

    def bookmark(self) -> None:
        """Brings the next bookmark forward to now."""
        with self._store.changed:
            self._next_bookmark = 0.0
            self._store.changed.notify_all()

    def _next(self) -> list[Frame]:
        with self._store.changed:
            now = time.monotonic()
            frames = list(self._extra)
            self._extra.clear()
            frames += self._changes()
            if not frames and now < min(self._end, self._next_bookmark):
                self._store.changed.wait(min(self._end, self._next_bookmark) - now)
                return []
            if now >= self._next_bookmark and not self.ended:
                self._next_bookmark = now + BOOKMARK_EVERY_S
                if self.request.flag("allowWatchBookmarks") and self._revision <= self._store.revision:
                    frames.append(self._bookmark())
            self.ended = self.ended or now >= self._end
            return frames

    def _changes(self) -> list[Frame]:
        """The frames of what changed since; to be called with the store's lock."""
        if self._revision >= self._store.revision:
            return []
        changes = self._store.after(self._kind, self._revision)
        if changes is None:
            self.ended = True
            message = f"too old resource version: {self._revision} ({self._store.revision})"
            return [error_frame(refusals.expired(message))]
        frames = [frame for change in changes if (frame := self._frame(change))]
        self._revision = self._store.revision
        return frames

    def _frame(self, change: Change) -> Frame | None:
        if self.request.namespace and change.name[0] != self.request.namespace:
            return None
        was = change.before is not None and self._chosen(change.before.object)
        now = change.after is not None and self._chosen(change.after.object)
        if change.after is not None and now:
            return _event("MODIFIED" if was else "ADDED", change.after)
        if not was:
            return None
        last = change.last or _left(change)
        return _event("DELETED", last)

    def _initial(self) -> list[Frame]:
        if self._revision:
            return []
        with self._store.changed:
            self._revision = self._store.revision
            snapshot = self._store.snapshot(self._kind, self._revision) or []
        return [
            _event("ADDED", stored)
            for name, stored in snapshot
            if (not self.request.namespace or name[0] == self.request.namespace) and self._chosen(stored.object)
        ]

    def _bookmark(self) -> Frame:
        body: dict[str, Any] = {
            "kind": self._kind.kind,
            "apiVersion": self._kind.api_version,
            "metadata": {"resourceVersion": str(self._revision)},
        }
        if self._kind.kind == "Pod":
            body |= {"spec": {"containers": None}, "status": {}}
        elif self._kind.kind == "Node":
            body |= {"spec": {}, "status": {}}
        return _line("BOOKMARK", json.dumps(body, separators=(",", ":")).encode())


def error_frame(refused: refusals.Refused) -> Frame:
    return _line("ERROR", json.dumps(refused.status(), separators=(",", ":")).encode())


def _event(type_: str, stored: Stored) -> Frame:
    return _line(type_, stored.text)


def _line(type_: str, text: bytes) -> Frame:
    return b'{"type":"' + type_.encode() + b'","object":' + text + b"}\n"


def _left(change: Change) -> Stored:
    """An object that no longer matches the selector: as it was, with the new resourceVersion."""
    assert change.before is not None
    before = change.before.object
    metadata = {**before["metadata"], "resourceVersion": str(change.revision)}
    return Stored({**before, "metadata": metadata}, change.revision)


def _start_revision(request: Request) -> int:
    text = request.query.get("resourceVersion") or "0"
    if not (text.isascii() and text.isdigit()):
        parsing = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise refusals.Refused(500, f'resourceVersion: Invalid value: "{text}": {parsing}')
    return int(text)


def _timeout_s(request: Request) -> float:
    text = request.query.get("timeoutSeconds") or "0"
    if not text.isdigit():
        raise refusals.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return float(text) or LONGEST_S
