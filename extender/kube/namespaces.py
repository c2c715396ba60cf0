"""Namespaces from the API server's JSON: what an operator has set by annotation, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from extender.kube.namespace_settings import NamespaceRow
from extender.kube.rows import Metadata
from extender.kube.stream import Resource, name, resource
from numakin.placement import namespaces as settings


class _Namespace(msgspec.Struct):
    metadata: Metadata


def namespaces() -> Resource[NamespaceRow]:
    """All of them, to list and watch."""
    return resource("/api/v1/namespaces", _Namespace, _row, key=lambda row: row.name, gone_key=name)


def _row(namespace: _Namespace) -> NamespaceRow:
    metadata = namespace.metadata
    read, problems = settings.read(metadata.annotations or {})
    if read.affinity_with:
        read = replace(read, labels=metadata.labels or {})
    return NamespaceRow(metadata.name, metadata.uid, read, problems)
