"""Pods and nodes from the API server's JSON: only the fields that are needed, equal parts shared.

A cluster may have 150,000 pods, most of which are replicas of others and none of our business: their annotations are
dropped here, and containers with the same resources are one object however many pods have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from sys import intern
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import msgspec

from extender.state import node_domains, told_groups
from extender.state.pod_json import (
    NO_RESOURCES,
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
from extender.state.pod_terms import NO_POD_TERMS, PodTerms
from extender.state.pods import DEMANDS, NOTHING_BESIDE, Allocatable, ContainerRow, NodeRow, PodRow, ServiceRow
from numakin.placement.model.demand import Demand, from_resources, quantity
from numakin.placement.model.errors import BadQuantity, BadTerms
from numakin.placement.model.node_terms import KEPT_OUT, NO_TERMS, NodeTerms, Taint
from numakin.placement.model.workload import NODE
from numakin.placement.optin import katalyst
from numakin.placement.optin.parsing import DOMAIN, opted_in
from numakin.placement.traffic.mentions import NO_MENTIONS, Mentions, mentions

MIRROR = "kubernetes.io/config.mirror"
_HASH = re.compile(r"[0-9a-f]{32}")

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no JSON, or JSON of another shape, or nested too deeply."""

_NOTHING: Mapping[str, str] = {}

_Amounts = dict[str, str | int | float]


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class _Variable(msgspec.Struct):
    value: str | None = None


_NONE = b"null"
_NULL = msgspec.Raw(_NONE)


class _ContainerSpec(Container, rename="camel"):
    """env, args, command: as received; decoded only for pods that have opted in."""

    env: msgspec.Raw = _NULL
    args: msgspec.Raw = _NULL
    command: msgspec.Raw = _NULL


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None


class _Volume(msgspec.Struct, rename="camel"):
    persistent_volume_claim: msgspec.Raw = _NULL
    ephemeral: msgspec.Raw = _NULL


class PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    service_account_name: str = ""
    host_network: bool | None = None
    priority: int | None = None
    containers: list[_ContainerSpec] | None = None
    init_containers: list[_ContainerSpec] | None = None
    resources: Resources | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None
    scheduling_gates: list[msgspec.Raw] | None = None
    node_selector: msgspec.Raw = _NULL
    affinity: msgspec.Raw = _NULL
    tolerations: msgspec.Raw = _NULL
    topology_spread_constraints: msgspec.Raw = _NULL
    volumes: list[_Volume] | None = None
    overhead: _Amounts | None = None


class PodCondition(msgspec.Struct, rename="camel"):
    """Of a pod, or of a group of pods. number: another for each, never 0."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None

    @property
    def number(self) -> int:
        return 1 + crc32(f"{self.last_transition_time} {self.reason} {self.message}".encode())


class _PodAddress(msgspec.Struct):
    ip: str = ""


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = "Pending"
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: list[_PodAddress] | None = msgspec.field(name="podIPs", default=None)
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None
    nominated_node_name: str | None = None
    conditions: list[PodCondition] | None = None

    @property
    def unscheduled(self) -> int:
        refused = (each for each in self.conditions or () if each.type == "PodScheduled" and each.status == "False")
        return next((condition.number for condition in refused), 0)

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.conditions or ())


class PodObject(msgspec.Struct):
    """A pod as the API server sends it, reduced."""

    metadata: Metadata
    spec: PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Taint(msgspec.Struct):
    key: str = ""
    value: str | None = None
    effect: str = ""


class _NodeSpec(msgspec.Struct):
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None


class _NodeCondition(msgspec.Struct):
    type: str
    status: str


class _Address(msgspec.Struct):
    address: str


class _NodeStatus(msgspec.Struct):
    conditions: list[_NodeCondition] | None = None
    addresses: list[_Address] | None = None
    allocatable: dict[str, str] | None = None


class NodeObject(msgspec.Struct):
    """A node as the API server sends it, reduced."""

    metadata: Metadata
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Said(NamedTuple):
    """By a pod. None: it can't be read; of_pods: or is more than what is planned for."""

    of_nodes: NodeTerms | None
    of_pods: PodTerms | None


_NOTHING_SAID = _Said(NO_TERMS, NO_POD_TERMS)


class PodRows:
    """Makes PodRows, sharing what is equal among them."""

    _LARGEST: ClassVar[int] = 50_000
    """Distinct container lists that are remembered; past it they are forgotten and learned anew."""

    _MENTIONING: ClassVar[int] = 1_000
    """Distinct environments and arguments of pods whose mentions are remembered, likewise: 20 KB each at the most."""

    _TERMS: ClassVar[int] = 1_000
    """Distinct texts of what pods say of nodes and each other, likewise."""

    def __init__(self, *, service_names: bool = False) -> None:
        """service_names: whether to look for names of Services in the containers of pods that have opted in."""
        self._service_names = service_names
        self._known: dict[Any, tuple[ContainerRow, ...]] = {}
        self._mentions: dict[int, Mentions] = {}
        self._terms: dict[tuple[tuple[bytes, ...], frozenset[tuple[str, str]]], _Said] = {}

    def row(self, pod: PodObject) -> PodRow:
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        annotations = _read_here(metadata.annotations)
        member = opted_in(annotations)
        labels = _shared(metadata.labels or _NOTHING) if member else _NOTHING
        said = self._said(spec, labels) if member else _NOTHING_SAID
        claims = member and _claims_volumes(spec)
        own = _given(spec.resources, status.resources, status.allocated_resources) if spec.resources else NO_RESOURCES
        return PodRow(
            uid=uid_of(metadata),
            namespace=intern(metadata.namespace),
            name=metadata.name,
            node=intern(spec.node_name or ""),
            annotations=annotations,
            containers=self._containers(spec, status),
            owner=workload_owner(metadata.owner_references, metadata.labels or _NOTHING),
            phase=intern(status.phase),
            ip=status.pod_ip or "",
            other_ips=tuple(each.ip for each in status.pod_ips or () if each.ip != status.pod_ip),
            host_network=bool(spec.host_network),
            priority=spec.priority or 0,
            account=intern(spec.service_account_name),
            requests=amounts(own.requests) if own.requests else _NOTHING,
            limits=amounts(own.limits) if own.limits else _NOTHING,
            labels=labels,
            mentions=self._mentioned(metadata.namespace, spec) if member and self._service_names else NO_MENTIONS,
            leaving=metadata.deletion_timestamp is not None,
            nominated=intern(status.nominated_node_name or ""),
            scheduling_group=scheduled_with(spec.scheduling_group, spec.workload_ref),
            unscheduled=status.unscheduled if member else 0,
            gated=bool(spec.scheduling_gates),
            own_terms=claims or said != (said.of_nodes, NO_POD_TERMS),
            said=NO_POD_TERMS if claims else said.of_pods or NO_POD_TERMS,
            terms=said.of_nodes or NO_TERMS,
            ready=member and status.ready,
            overhead=_overhead(tuple(spec.overhead.items())) if spec.overhead else NOTHING_BESIDE,
        )

    def _mentioned(self, namespace: str, spec: PodSpec) -> Mentions:
        """Read once for all replicas, each of which is reported several times. Of texts their hash is kept alone, as
        in `mentions`.
        """
        key = hash((namespace, *map(bytes, _raw_texts(spec))))
        known = self._mentions.get(key)
        if known is None:
            if len(self._mentions) >= self._MENTIONING:
                self._mentions.clear()
            known = self._mentions[key] = mentions(namespace, _texts(spec))
        return known

    def _said(self, spec: PodSpec, labels: Mapping[str, str]) -> _Said:
        """What the pod says of nodes and other pods, one object for all that say it in the same words."""
        texts = tuple(
            map(bytes, (spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints))
        )
        key = texts, frozenset(labels.items()) if (texts[1], texts[3]) != (_NONE, _NONE) else frozenset()
        known = self._terms.get(key)
        if known is None:
            if len(self._terms) >= self._TERMS:
                self._terms.clear()
            known = self._terms[key] = _read(texts, labels)
        return known

    def _containers(self, spec: PodSpec, status: _PodStatus) -> tuple[ContainerRow, ...]:
        init = _as_given(spec.init_containers, status.init_container_statuses)
        regular = _as_given(spec.containers, status.container_statuses)
        key = (_key(init), _key(regular))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._LARGEST:
                self._known.clear()
            rows = [container_row(container, init=True) for container in init]
            rows += [container_row(container, init=False) for container in regular]
            known = self._known[key] = tuple(rows)
        return known


def uid_of(metadata: Metadata) -> str:
    """What the pod's node calls it. A static pod's uid there is the hash of its manifest; the mirror pod that the
    kubelet shows it by has another one of the API server's, and the hash in an annotation.

    Only for a pod that its node owns, and a hash as kubelets make it, which no pod of the API server's has for a uid.
    """
    hashed = (metadata.annotations or _NOTHING).get(MIRROR, "")
    if not _HASH.fullmatch(hashed):
        return metadata.uid
    owned = any(
        owner_reference.controller and owner_reference.kind == NODE
        for owner_reference in metadata.owner_references or ()
    )
    return hashed if owned else metadata.uid


def node_row(node: NodeObject, near: Sequence[str] = ()) -> NodeRow:
    """near: the labels by which nodes are near each other."""
    return NodeRow(
        name=node.metadata.name,
        uid=node.metadata.uid,
        ready=any(
            condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions or ()
        ),
        addresses=tuple(address.address for address in node.status.addresses or ()),
        cordoned=bool(node.spec.unschedulable),
        labels=node.metadata.labels or _NOTHING,
        taints=tuple(
            Taint(intern(taint.key), intern(taint.value or ""), intern(taint.effect))
            for taint in node.spec.taints or ()
            if taint.effect in KEPT_OUT
        ),
        near=node_domains.values(node.metadata.labels or _NOTHING, near),
        allocatable=_allocatable(node.status.allocatable or {}),
    )


@lru_cache(maxsize=DEMANDS)
def _overhead(given: tuple[tuple[str, str | int | float], ...]) -> Demand:
    try:
        return from_resources(amounts(dict(given)), {})
    except BadQuantity:
        return NOTHING_BESIDE


def _allocatable(resources: Mapping[str, str]) -> Allocatable:
    return Allocatable(*(_amount(resources, *each) for each in (("cpu", 1000), ("memory", 1), ("pods", 1))))


def _amount(resources: Mapping[str, str], name: str, times: int) -> float:
    try:
        return int(quantity(resources[name]) * times)
    except (KeyError, BadQuantity):
        return inf


def _as_given(containers: list[_ContainerSpec] | None, statuses: list[_ContainerStatus] | None) -> Sequence[Container]:
    """With the resources that the node has given them by now."""
    given = {status.name: status for status in statuses or () if status.resources or status.allocated_resources}
    if not given:
        return containers or []
    return [
        Container(
            container.name,
            _given(container.resources, given[container.name].resources, given[container.name].allocated_resources),
            container.restart_policy,
        )
        if container.name in given
        else container
        for container in containers or ()
    ]


def _given(spec: Resources | None, actual: Resources | None, allocated: Mapping[str, Any] | None) -> Resources:
    """What the kubelet says that it has set aside (allocated) or carried out (actual), else what the spec asks for.

    What the spec does not name is not its own: a container without a CPU limit may show its pod's.
    """
    requested, now = spec or NO_RESOURCES, actual or NO_RESOURCES
    return Resources(
        requests={**_renewed(requested.requests, now.requests), **(allocated or {})},
        limits=_renewed(requested.limits, now.limits),
    )


def _renewed(spec: _Amounts | None, actual: _Amounts | None) -> _Amounts:
    now = actual or {}
    return {name: now.get(name, amount) for name, amount in (spec or {}).items()}


def _key(containers: Sequence[Container]) -> tuple[Any, ...]:
    return tuple(
        (
            container.name,
            container.restart_policy,
            tuple((container.resources.requests or _NOTHING).items()) if container.resources else (),
            tuple((container.resources.limits or _NOTHING).items()) if container.resources else (),
        )
        for container in containers
    )


def _read(texts: Sequence[bytes], labels: Mapping[str, str]) -> _Said:
    """texts: node selector, affinity, tolerations, spread constraints."""
    try:
        selector, affinity, tolerations, spreads = map(msgspec.json.decode, texts)
        of_nodes = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        terms = NodeTerms.of(selector, of_nodes, tolerations)
    except (BadTerms, AttributeError, *UNREADABLE):
        return _Said(None, None)
    try:
        return _Said(terms, PodTerms.of(affinity, spreads, labels))
    except BadTerms:
        return _Said(terms, None)


def _claims_volumes(spec: PodSpec) -> bool:
    return any(
        _given_raw(volume.persistent_volume_claim) or _given_raw(volume.ephemeral) for volume in spec.volumes or ()
    )


def _given_raw(raw: msgspec.Raw) -> bool:
    return bytes(raw) != _NONE


def _mentioning(spec: PodSpec) -> Iterator[_ContainerSpec]:
    """All containers."""
    yield from (*(spec.containers or ()), *(spec.init_containers or ()))


def _raw_texts(spec: PodSpec) -> Iterator[msgspec.Raw]:
    """What `_texts` are read from."""
    for container in _mentioning(spec):
        yield from (container.env, container.args, container.command)


def _texts(spec: PodSpec) -> Iterator[str]:
    """Values and arguments of all containers."""
    for container in _mentioning(spec):
        for variable in msgspec.json.decode(container.env, type=list[_Variable] | None) or ():
            yield variable.value or ""
        for words in (container.args, container.command):
            yield from msgspec.json.decode(words, type=list[str] | None) or ()


def _shared(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {intern(key): intern(value) for key, value in labels.items()}


def _read_here(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    """Those whose domain is numakin's, and beside an opt-in Katalyst's and those with a size: without one they mean
    nothing.
    """
    given = annotations or _NOTHING
    ours = {key: value for key, value in given.items() if DOMAIN in key.partition("/")[0]}
    if opted_in(ours):
        ours |= {key: given[key] for key in (*katalyst.KEYS, *told_groups.SIZES, told_groups.VOLCANO) if key in given}
    return ours or _NOTHING


class _ServiceSpec(msgspec.Struct):
    type: str = ""
    selector: dict[str, str] | None = None


class ServiceObject(msgspec.Struct):
    """A Service as the API server sends it, reduced."""

    metadata: Metadata
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


def service_row(service: ServiceObject) -> ServiceRow:
    """Without a selector where the name leads out of the cluster."""
    spec = service.spec
    selector = spec.selector if spec.type != "ExternalName" else None
    return ServiceRow(service.metadata.namespace, service.metadata.name, selector or {})
