"""Namespaces from the API server's JSON: what an operator has set by annotation, and nothing else."""

from __future__ import annotations

import msgspec

from extender.kube.namespace_settings import NamespaceChanges, NamespaceRow
from extender.kube.rows import Metadata
from extender.kube.stream import ListMetadata, Page, Resource
from placement import namespaces as settings


class _Namespace(msgspec.Struct):
    metadata: Metadata


class _Namespaces(msgspec.Struct):
    metadata: ListMetadata
    items: list[_Namespace]


def namespaces() -> Resource[NamespaceRow, NamespaceChanges]:
    """All of them, to list and watch."""
    lists, single = msgspec.json.Decoder(_Namespaces), msgspec.json.Decoder(_Namespace)

    def page(body: bytes) -> Page[NamespaceRow]:
        listed = lists.decode(body)
        return Page(
            [_row(namespace) for namespace in listed.items], listed.metadata.resource_version, listed.metadata.continue_
        )

    return Resource(
        path="/api/v1/namespaces",
        query={},
        page=page,
        row=lambda raw: _row(single.decode(raw)),
        key=lambda row: row.name,
        gone_key=lambda metadata: metadata.name,
        changes=NamespaceChanges,
    )


def _row(namespace: _Namespace) -> NamespaceRow:
    metadata = namespace.metadata
    read, problems = settings.read(metadata.annotations or {})
    return NamespaceRow(metadata.name, metadata.uid, read, problems)
