"""The v1.Pod of a request: only the fields that placement needs, checked by the API server's own rules for names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from extender.state.pods import ContainerRow, PodRow, owner_row
from placement.model import names as names_rules

CONTAINERS = 1_000
"""Containers of one pod."""


class BadRequest(ValueError):
    """A body that is not what kube-scheduler sends; the text names the path and what is wrong there."""


class _WireResources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _WireContainer(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: _WireResources | None = None
    restart_policy: str | None = None


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_WireContainer] | None = None
    init_containers: list[_WireContainer] | None = None
    node_name: str | None = None
    host_network: bool | None = None
    priority: int | None = None
    resources: _WireResources | None = None


class PodBody(msgspec.Struct):
    """As kube-scheduler sends it."""

    metadata: _Metadata
    spec: _Spec


def row(pod: PodBody) -> PodRow:
    meta, spec = pod.metadata, pod.spec
    for path, text, rule in (
        ("metadata.name", meta.name, names_rules.is_object),
        ("metadata.namespace", meta.namespace or "default", names_rules.is_label),
        ("metadata.uid", meta.uid or "none", names_rules.is_id),
        ("spec.nodeName", spec.node_name or "none", names_rules.is_object),
    ):
        if not rule(text):
            raise BadRequest(f"Pod.{path}: {shown(text)} is no name that the API server takes")
    if len(spec.containers or ()) + len(spec.init_containers or ()) > CONTAINERS:
        raise BadRequest(f"Pod.spec: more than {CONTAINERS} containers")
    owner = next(
        (owner_reference for owner_reference in meta.owner_references or () if owner_reference.controller), None
    )
    return PodRow(
        uid=meta.uid or f"{meta.namespace}/{meta.name}",
        namespace=meta.namespace or "default",
        name=meta.name,
        node=spec.node_name or "",
        annotations=meta.annotations or {},
        containers=(
            *(_container(init_container, init=True) for init_container in spec.init_containers or ()),
            *(_container(container, init=False) for container in spec.containers or ()),
        ),
        owner=owner_row(owner.kind, owner.name, owner.uid) if owner else None,
        host_network=bool(spec.host_network),
        priority=spec.priority or 0,
        template_hash=(meta.labels or {}).get("pod-template-hash", ""),
        requests=_amounts(spec.resources.requests if spec.resources else None),
        limits=_amounts(spec.resources.limits if spec.resources else None),
    )


def _container(container: _WireContainer, *, init: bool) -> ContainerRow:
    resources = container.resources or _WireResources()
    return ContainerRow(
        name=container.name,
        requests=_amounts(resources.requests),
        limits=_amounts(resources.limits),
        init=init,
        restartable=init and container.restart_policy == "Always",
    )


def _amounts(amounts: Mapping[str, str | int | float] | None) -> dict[str, str]:
    return {name: str(amount) for name, amount in (amounts or {}).items()}


def shown(text: str) -> str:
    """The beginning of what was sent, for an error."""
    return repr(text[:40])
