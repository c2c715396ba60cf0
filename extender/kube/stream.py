"""What lists and watches say: bytes in, changes and revisions out. No I/O here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from extender.kube.api import ApiError
from extender.kube.levels import shallow
from extender.kube.rows import (
    UNREADABLE,
    Metadata,
    NodeObject,
    PodObject,
    PodRows,
    ServiceObject,
    node_row,
    service_row,
    uid_of,
)
from extender.state.pods import Changes, NodeRow, PodRow, ServiceRow
from numakin.process.log import Log

LARGEST_FRAME = 16 * 1024 * 1024
"""Bytes of one watch event; etcd's largest object is 1.5 MiB by default."""

Item = TypeVar("Item")
Row = TypeVar("Row")


NO_QUERY: Mapping[str, str] = {}

_log = Log(__name__)


class BadFrame(Exception):
    """The watch sent what is no watch event."""


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, Generic[Item]):
    metadata: _ListMetadata
    items: list[Item]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Identity(msgspec.Struct):
    metadata: Metadata


class _ApiStatus(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of a list. `rest` continues it, empty on the last."""

    rows: list[Row]
    revision: str
    rest: str


@dataclass(frozen=True)
class Batch(Generic[Row]):
    """What some frames of a watch amount to. revision: up to which they lead (empty when none has it). events: how many
    were objects.
    """

    changes: Changes[Row] | None
    revision: str
    events: int


@dataclass(frozen=True)
class Resource(Generic[Row]):
    """What to list and watch, and how to read it. row: None for an object of another shape, which counts as none: other
    projects' definitions let some pass, and one of them costs no other its place. key: what names a row in `gone`.
    """

    path: str
    query: Mapping[str, str]
    page: Callable[[bytes], Page[Row]]
    row: Callable[[msgspec.Raw], Row | None]
    key: Callable[[Row], str]
    gone_key: Callable[[Metadata], str]


def resource(
    path: str,
    kind: type[Item],
    row: Callable[[Item], Row],
    *,
    key: Callable[[Row], str],
    gone_key: Callable[[Metadata], str],
    query: Mapping[str, str] = NO_QUERY,
) -> Resource[Row]:
    """kind: what one object is decoded as. row: made from it."""
    single = msgspec.json.Decoder(kind)
    lists = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]  # known at run time alone

    def one(raw: msgspec.Raw) -> Row | None:
        try:
            return row(_decoded(single, raw))
        except Exception as bad:  # noqa: BLE001 - whatever is wrong with one object, the others are to be seen
            why = str(bad) if isinstance(bad, msgspec.ValidationError) else repr(bad)
            _log.warning("an object can't be read: it counts as none", path=path, why=why, begin=bytes(raw)[:100])
            return None

    def page(body: bytes) -> Page[Row]:
        try:
            listed = lists.decode(body)
            rows = [row(item) for item in listed.items]
        except Exception:  # noqa: BLE001 - then one by one; what is no list raises again
            listed = _decoded(_RAW_LISTS, body)
            rows = [found for raw in listed.items if (found := one(raw)) is not None]
        return Page(rows, listed.metadata.resource_version, listed.metadata.continue_)

    return Resource(
        path=path,
        query=query,
        page=page,
        row=one,
        key=key,
        gone_key=gone_key,
    )


def name(metadata: Metadata) -> str:
    return metadata.name


def namespaced_name(metadata: Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}"


def pods(*, service_names: bool = False) -> Resource[PodRow]:
    """All pods but those that have ended: one that ends leaves the selection, which a watch reports as a deletion.

    service_names: as PodRows takes it.
    """
    rows = PodRows(service_names=service_names)
    running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    return resource("/api/v1/pods", PodObject, rows.row, key=lambda row: row.uid, gone_key=uid_of, query=running)


def nodes(near: Sequence[str] = ()) -> Resource[NodeRow]:
    """near: the labels by which nodes are near each other."""
    row = partial(node_row, near=near)
    return resource("/api/v1/nodes", NodeObject, row, key=lambda row: row.name, gone_key=name)


def services() -> Resource[ServiceRow]:
    return resource(
        "/api/v1/services", ServiceObject, service_row,
        key=lambda row: row.key, gone_key=namespaced_name,
    )  # fmt: skip


@dataclass
class Lines:
    """Splits a stream of bytes, however it is cut, into lines."""

    _rest: bytes = field(default=b"")

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now; BadFrame when one is over LARGEST_FRAME."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LARGEST_FRAME:
            raise BadFrame(f"a watch event is over {LARGEST_FRAME} bytes")
        return [line for line in lines if line.strip()]


_RAW_LISTS = msgspec.json.Decoder(_List[msgspec.Raw])
_EVENTS = msgspec.json.Decoder(_Event)
_IDENTITY = msgspec.json.Decoder(_Identity)
_STATUS = msgspec.json.Decoder(_ApiStatus)


def _decoded(decoder: msgspec.json.Decoder[Item], text: bytes | msgspec.Raw) -> Item:
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(shallow(bytes(text)))


def reduce(resource: Resource[Row], lines: Iterable[bytes]) -> Batch[Row]:
    """What these frames amount to: the last state of each object counts.

    ApiError when the server says so in the stream (code 410: the revision is too old), BadFrame when it is no event.
    Both lose what came before them in `lines`: the caller goes on from its own revision, and receives it again.
    """
    last: dict[str, Any] = {}
    revision, events = "", 0
    for line in lines:
        try:
            event = _decoded(_EVENTS, line)
            if event.type == "ERROR":
                status = _STATUS.decode(event.object)
                raise ApiError(status.code, status.reason, status.message)
            metadata = _decoded(_IDENTITY, event.object).metadata
            if event.type in ("ADDED", "MODIFIED"):
                row = resource.row(event.object)
                last[resource.key(row) if row is not None else resource.gone_key(metadata)] = row
            elif event.type == "DELETED":
                last[resource.gone_key(metadata)] = None
        except UNREADABLE as bad:
            raise BadFrame(f"{bad}: {line[:100]!r}") from bad
        events += event.type != "BOOKMARK"
        revision = metadata.resource_version or revision
    if not last:
        return Batch(None, revision, events)
    rows = tuple(row for row in last.values() if row is not None)
    gone = tuple(key for key, row in last.items() if row is None)
    return Batch(Changes(rows=rows, gone=gone), revision, events)
