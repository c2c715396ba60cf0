"""The v1.Pod of a request: only the fields that placement needs, checked by the API server's own rules for names."""

from __future__ import annotations

import msgspec

from extender.state.pod_json import (
    Container,
    OwnerReference,
    Resources,
    SchedulingGroup,
    WorkloadRef,
    amounts,
    container_row,
    scheduled_with,
    workload_owner,
)
from extender.state.pods import PodRow
from numakin.placement.model import names as names_rules

CONTAINERS = 1_000
"""Containers of one pod."""


class BadRequest(ValueError):
    """A body that is not what kube-scheduler sends; the text names the path and what is wrong there."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    host_network: bool | None = None
    priority: int | None = None
    resources: Resources | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None


class PodBody(msgspec.Struct):
    """As kube-scheduler sends it."""

    metadata: _Metadata
    spec: _Spec


def row(pod: PodBody) -> PodRow:
    meta, spec = pod.metadata, pod.spec
    gang = scheduled_with(spec.scheduling_group, spec.workload_ref)
    for path, text, rule in (
        ("metadata.name", meta.name, names_rules.is_object),
        ("metadata.namespace", meta.namespace or "default", names_rules.is_label),
        ("metadata.uid", meta.uid or "none", names_rules.is_id),
        ("spec.nodeName", spec.node_name or "none", names_rules.is_object),
        ("spec.schedulingGroup", gang or "none", names_rules.is_object),
    ):
        if not rule(text):
            raise BadRequest(f"Pod.{path}: {shown(text)} is no name that the API server takes")
    if len(spec.containers or ()) + len(spec.init_containers or ()) > CONTAINERS:
        raise BadRequest(f"Pod.spec: more than {CONTAINERS} containers")
    labels = meta.labels or {}
    return PodRow(
        uid=meta.uid or f"{meta.namespace}/{meta.name}",
        namespace=meta.namespace or "default",
        name=meta.name,
        node=spec.node_name or "",
        annotations=meta.annotations or {},
        containers=(
            *(container_row(init_container, init=True) for init_container in spec.init_containers or ()),
            *(container_row(container, init=False) for container in spec.containers or ()),
        ),
        owner=workload_owner(meta.owner_references, labels),
        host_network=bool(spec.host_network),
        priority=spec.priority or 0,
        labels=labels,
        requests=amounts(spec.resources.requests if spec.resources else None),
        limits=amounts(spec.resources.limits if spec.resources else None),
        scheduling_group=gang,
    )


def shown(text: str) -> str:
    """The beginning of what was sent, for an error."""
    return repr(text[:40])
