"""AffinityGroup (numakin.io/v1alpha1): what became of a group, for `kubectl get affinitygroups`, and what was learned
of it, for the next extender.

The status is ours; the spec is the user's, and never touched. A group that nobody wrote an object for gets one without
a spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from extender.kube.publish import Desired
from extender.kube.rows import Metadata
from extender.kube.stream import ListMetadata, Page, Resource

API_VERSION = "numakin.io/v1alpha1"
_ROOT = f"/apis/{API_VERSION}"

MOST_MEMBERS = 500
MOST_EDGES = 100
"""Shown of each, in one object; etcd takes 1.5 MiB."""
MOST_HOMES = 3
"""Shown in the column; the rest is counted."""

LONGEST_NAME = 63
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_OBJECT_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One pod. numa_nodes: the kernel's list format, empty while it is not pinned. workload: KIND/NAME."""

    pod: str
    node: str
    numa_nodes: str = ""
    workload: str = ""


@dataclass(frozen=True, slots=True)
class EdgeStatus:
    """One directed pair of workloads, NAMESPACE/KIND/NAME."""

    source: str
    target: str
    bytes_per_second: int = 0
    messages_per_second: int = 0


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What is told of a group. locality: 0..1, None while nothing is known.

    edges: what was learned, for people; learned: the same and more for the next extender (`cluster/learned.py`). Both
    None while that is not known (yet), which leaves at the API server what is there.
    """

    namespace: str
    name: str
    members: tuple[MemberStatus, ...] = ()
    locality: float | None = None
    edges: tuple[EdgeStatus, ...] | None = None
    learned: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """What an object says: the user's wishes, and what an extender before us learned. priority 0, policy and size
    empty: not said.
    """

    namespace: str
    name: str
    policy: str = ""
    priority: int = 0
    size: int = 0
    learned: str = ""


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """As PodChanges; gone: NAMESPACE/NAME of objects."""

    rows: tuple[GroupRow, ...] = ()
    gone: tuple[str, ...] = ()
    whole: bool = False


def object_name(group: str) -> str:
    """An object's name for a group's: its own where that may be one, else a lower-case likeness with a hash, so that
    two groups never share one.
    """
    if len(group) <= LONGEST_NAME and _OBJECT_NAME.fullmatch(group):
        return group
    likeness = re.sub(r"[^a-z0-9]+", "-", group.lower())[:50].strip("-")
    return f"{likeness or 'group'}-{blake2b(group.encode(), digest_size=4).hexdigest()}"


def affinity_group(group: GroupStatus) -> Desired:
    """The object of one group."""
    name = object_name(group.name)
    body = {
        "apiVersion": API_VERSION,
        "kind": "AffinityGroup",
        "metadata": {"name": name, "annotations": {"numakin.io/group": group.name}},
    }
    path = f"{_ROOT}/namespaces/{group.namespace}/affinitygroups/{name}"
    return Desired(path, body, _status(group), _learned(group))


def affinity_groups() -> Resource[GroupRow, GroupChanges]:
    """All groups' objects, to list and watch."""
    lists, one = msgspec.json.Decoder(_Groups), msgspec.json.Decoder(_Group)

    def page(body: bytes) -> Page[GroupRow]:
        found = lists.decode(body)
        return Page([_row(group) for group in found.items], found.metadata.resource_version, found.metadata.continue_)

    return Resource(
        path=f"{_ROOT}/affinitygroups",
        query={},
        page=page,
        row=lambda raw: _row(one.decode(raw)),
        key=lambda row: f"{row.namespace}/{object_name(row.name)}",
        gone_key=lambda metadata: f"{metadata.namespace}/{metadata.name}",
        changes=GroupChanges,
    )


def homes(members: Iterable[MemberStatus]) -> str:
    """Where the members are, the most first: `node-7/1 node-3/0 +2`."""
    counted = Counter(f"{one.node}/{one.numa_nodes or '-'}" for one in members)
    ranked = sorted(counted, key=lambda home: (-counted[home], home))
    more = [f"+{len(ranked) - MOST_HOMES}"] if len(ranked) > MOST_HOMES else []
    return " ".join(ranked[:MOST_HOMES] + more)


def _status(group: GroupStatus) -> dict[str, Any]:
    members = sorted(group.members, key=lambda one: one.pod)
    return {
        "memberCount": len(members),
        "members": [_member(one) for one in members[:MOST_MEMBERS]],
        "homes": homes(members),
        "locality": "" if group.locality is None else f"{round(100 * group.locality)} %",
    }


def _learned(group: GroupStatus) -> dict[str, Any] | None:
    if group.edges is None or group.learned is None:
        return None
    edges = group.edges
    heaviest = sorted(edges, key=lambda one: (-one.bytes_per_second, -one.messages_per_second, one.source, one.target))
    shown = [_edge(one) for one in heaviest[:MOST_EDGES]]
    return {"edgeCount": len(heaviest), "edges": shown, "learned": group.learned}


def _member(one: MemberStatus) -> dict[str, str]:
    said = {"pod": one.pod, "node": one.node, "numaNodes": one.numa_nodes, "workload": one.workload}
    return {name: value for name, value in said.items() if value}


def _edge(one: EdgeStatus) -> dict[str, Any]:
    rates = {"bytesPerSecond": one.bytes_per_second, "messagesPerSecond": one.messages_per_second}
    return {"source": one.source, "target": one.target, **rates}


class _Status(msgspec.Struct):
    learned: str = ""


class _Spec(msgspec.Struct):
    policy: str = ""
    priority: int = 0
    size: int = 0


class _Group(msgspec.Struct):
    metadata: Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Groups(msgspec.Struct):
    metadata: ListMetadata
    items: list[_Group]


def _row(group: _Group) -> GroupRow:
    metadata, spec = group.metadata, group.spec
    return GroupRow(
        namespace=metadata.namespace,
        name=(metadata.annotations or {}).get("numakin.io/group", metadata.name),
        policy=spec.policy,
        priority=spec.priority,
        size=spec.size,
        learned=group.status.learned,
    )
