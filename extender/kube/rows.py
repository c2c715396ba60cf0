"""Pods and nodes from the API server's JSON: only the fields that are needed, equal parts shared.

A cluster may have 150,000 pods, most of which are replicas of others and none of our business: their annotations are
dropped here, and containers with the same resources are one object however many pods have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, ClassVar

import msgspec

from extender.cluster.pods import ContainerRow, NodeRow, OwnerRow, PodRow
from placement.optin import DOMAIN
from placement.workload import top_owner

_NOTHING: Mapping[str, str] = {}


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class Owner(msgspec.Struct):
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class _Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    restart_policy: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    service_account_name: str = ""
    host_network: bool | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    pod_ip: str | None = msgspec.field(name="podIP", default=None)


class Pod(msgspec.Struct):
    """A pod as the API server sends it, reduced."""

    metadata: Metadata
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Address(msgspec.Struct):
    address: str


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] | None = None
    addresses: list[_Address] | None = None


class Node(msgspec.Struct):
    """A node as the API server sends it, reduced."""

    metadata: Metadata
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class PodRows:
    """Makes PodRows, sharing what is equal among them."""

    _LARGEST: ClassVar[int] = 50_000
    """Distinct container lists that are remembered; past it they are forgotten and learned anew."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[ContainerRow, ...]] = {}

    def row(self, pod: Pod) -> PodRow:
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        return PodRow(
            uid=metadata.uid,
            namespace=intern(metadata.namespace),
            name=metadata.name,
            node=intern(spec.node_name or ""),
            annotations=_ours(metadata.annotations),
            containers=self._containers(spec),
            owner=_owner(metadata),
            phase=intern(status.phase),
            ip=status.pod_ip or "",
            host_network=bool(spec.host_network),
            account=intern(spec.service_account_name),
        )

    def _containers(self, spec: _PodSpec) -> tuple[ContainerRow, ...]:
        key = (_key(spec.init_containers), _key(spec.containers))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._LARGEST:
                self._known.clear()
            rows = [_container(one, init=True) for one in spec.init_containers or ()]
            rows += [_container(one, init=False) for one in spec.containers or ()]
            known = self._known[key] = tuple(rows)
        return known


def node_row(node: Node) -> NodeRow:
    return NodeRow(
        name=node.metadata.name,
        uid=node.metadata.uid,
        ready=any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ()),
        addresses=tuple(one.address for one in node.status.addresses or ()),
    )


def _container(one: _Container, *, init: bool) -> ContainerRow:
    resources = one.resources or _Resources()
    return ContainerRow(
        name=one.name,
        requests=_amounts(resources.requests),
        limits=_amounts(resources.limits),
        init=init,
        restartable=init and one.restart_policy == "Always",
    )


def _amounts(told: Mapping[str, str | int | float] | None) -> dict[str, str]:
    """The API server sends quantities as strings; clients of older ones were known to store bare numbers."""
    return {intern(name): str(amount) for name, amount in (told or {}).items()}


def _key(containers: list[_Container] | None) -> tuple[Any, ...]:
    return tuple(
        (
            one.name,
            one.restart_policy,
            tuple((one.resources.requests or _NOTHING).items()) if one.resources else (),
            tuple((one.resources.limits or _NOTHING).items()) if one.resources else (),
        )
        for one in containers or ()
    )


def _ours(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    """Those whose domain is numakin's."""
    found = {key: value for key, value in (annotations or _NOTHING).items() if DOMAIN in key.partition("/")[0]}
    return found or _NOTHING


def _owner(metadata: Metadata) -> OwnerRow | None:
    """The workload; its uid only where the pod's own controller is the workload, since names tell no uids."""
    controller = next((one for one in metadata.owner_references or () if one.controller), None)
    if controller is None:
        return None
    kind, name = top_owner(controller.kind, controller.name, metadata.labels or _NOTHING)
    uid = controller.uid if (kind, name) == (controller.kind, controller.name) else ""
    return OwnerRow(intern(kind), intern(name), uid)
