"""GET and LIST: the resourceVersion and paging rules."""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

from lab.standins.apiserver.model import refusals, selectors
from lab.standins.apiserver.model.kinds import Kind
from lab.standins.apiserver.model.requests import Request
from lab.standins.apiserver.objects.store import Name, Store, Stored

FUTURE_WAIT_S = 3.0
"""How long a LIST waits for a revision that has not come yet, before it answers 504."""

_INCONSISTENT = -1


@dataclass(frozen=True)
class PageToken:
    """The content of a continue token: the list's revision, and the last name given out."""

    revision: int
    last: Name

    def text(self, *, namespaced: bool) -> str:
        namespace, name = self.last
        slash = "" if self.revision == _INCONSISTENT else "/"
        start = f"{slash}{namespace}/{name}" if namespaced and namespace else name
        body = json.dumps({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start + "\0"}, separators=(",", ":"))
        return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, namespace: str) -> PageToken:
        try:
            body = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            start = body["start"].rstrip("\0").lstrip("/")
            before, slash, name = start.rpartition("/")
            return cls(int(body["rv"]), (before if slash else namespace, name))
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as bad:
            raise refusals.bad_request(f"invalid continue token: continue key is not valid: {bad}") from bad


def revision_of(text: str) -> int:
    """The number of a resourceVersion parameter; refused as LIST refuses it."""
    if not (text.isascii() and text.isdigit()):
        raise refusals.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: '
            f'parsing "{text}": invalid syntax'
        )
    return int(text)


def get(store: Store, request: Request) -> Stored:
    stored = store.get(request.kind, (request.namespace, request.name))
    if stored is None:
        raise refusals.not_found(request.kind, request.name)
    return stored


def list_text(store: Store, request: Request) -> bytes:
    """The whole answer to a LIST."""
    if request.query.get("continue") and request.query.get("resourceVersion") not in (None, "", "0"):
        raise refusals.bad_request("specifying resource version is not allowed when using continue")
    chosen = selectors.predicate(
        request.kind, request.query.get("fieldSelector", ""), request.query.get("labelSelector", "")
    )
    selective = chosen is not selectors.everything
    revision, last = _asked(store, request)
    snapshot = store.snapshot(request.kind, revision)
    if snapshot is None:
        raise _too_old(request, last)
    begin = 0 if last is None else bisect_right(snapshot, last, key=itemgetter(0))
    matching = (
        (name, stored)
        for name, stored in islice(snapshot, begin, None)
        if (not request.namespace or name[0] == request.namespace) and (not selective or chosen(stored.object))
    )
    limit = 0 if request.query.get("resourceVersion") == "0" else int(request.query.get("limit") or 0)
    # What is left is counted for the answer only where nothing is selected; else one more shows that there is more.
    rest = list(islice(matching, limit + 1) if limit and selective else matching)
    page = rest[:limit] if limit else rest
    return list_page(
        request.kind, [stored for _, stored in page], _metadata(request, revision, page, len(rest), selective=selective)
    )


def list_page(kind: Kind, items: Iterable[Stored], metadata: dict[str, Any]) -> bytes:
    """Items of built-in kinds have neither kind nor apiVersion; those of custom ones have both."""
    head = json.dumps({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata})
    texts = (stored.text if kind.custom else stored.item_text for stored in items)
    return head[:-1].encode() + b',"items":[' + b",".join(texts) + b"]}\n"


def _metadata(
    request: Request, revision: int, page: Sequence[tuple[Name, Stored]], left: int, *, selective: bool
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if left > len(page):
        token = PageToken(revision, page[-1][0])
        metadata["continue"] = token.text(namespaced=not request.namespace)
        if not selective:
            metadata["remainingItemCount"] = left - len(page)
    return metadata


def _asked(store: Store, request: Request) -> tuple[int, Name | None]:
    """The revision to list at, and the name after which to start."""
    if request.query.get("continue"):
        token = PageToken.parse(request.query["continue"], request.namespace)
        return (store.revision if token.revision == _INCONSISTENT else token.revision), token.last
    asked = revision_of(request.query.get("resourceVersion") or "0")
    with store.changed:
        if asked > store.revision and not store.changed.wait_for(lambda: asked <= store.revision, FUTURE_WAIT_S):
            raise refusals.future_revision(asked, store.revision)
        return (asked if request.query.get("resourceVersionMatch") == "Exact" else store.revision), None


def _too_old(request: Request, last: Name | None) -> refusals.Refused:
    if last is None:
        return refusals.expired(refusals.TOO_OLD_LIST)
    return refusals.expired(
        refusals.TOO_OLD_TOKEN, PageToken(_INCONSISTENT, last).text(namespaced=not request.namespace)
    )
