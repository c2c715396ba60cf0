"""AffinityGroup (numakin.io/v1alpha1): what became of a group, for `kubectl get affinitygroups`, and what was learned
of it, for the next extender.

The status is ours; the spec is the operator's, and never touched. A group without an object gets one without a
spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from extender.kube.publish import Desired

API_VERSION = "numakin.io/v1alpha1"
ROOT = f"/apis/{API_VERSION}"

MOST_MEMBERS = 500
MOST_EDGES = 100
"""Shown of each, in one object; etcd takes 1.5 MiB."""
MOST_HOMES = 3
"""Shown in the column; the rest is counted."""
LONGEST_MESSAGE = 1024

GROUP_KEY = "numakin.io/group"
"""Annotation with the group's name, where that can't be an object's."""
ACCEPTED = "Accepted"
"""The type of the condition that shows whether all of the spec counts."""

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
    """What is published of a group. locality: 0..1, None while nothing is known.

    edges: what was learned, for people; learned: the same and more for the next extender (`cluster/learned.py`). Both
    None while that is not known (yet), which leaves at the API server what is there. accepted: None where there is no
    spec. conditions: the others. uid: of the object that is there.
    """

    namespace: str
    name: str
    members: tuple[MemberStatus, ...] = ()
    locality: float | None = None
    edges: tuple[EdgeStatus, ...] | None = None
    learned: str | None = None
    accepted: Accepted | None = None
    conditions: tuple[GroupCondition, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """As Kubernetes has conditions. since: of its last transition, RFC 3339, in seconds. generation: of the spec, where
    it is about that; 0: it is not.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str = ""
    generation: int = 0

    def after(self, before: GroupCondition | None) -> GroupCondition:
        """With the transition of the one before, where the status is the same."""
        lasts = before is not None and before.since and before.status == self.status
        return replace(self, since=before.since) if before is not None and lasts else self


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whether all of the spec counts. problems: what does not. generation: of the spec. since: RFC 3339, in seconds."""

    problems: tuple[str, ...]
    generation: int
    since: str


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
        "metadata": {"name": name, "annotations": {GROUP_KEY: group.name}},
    }
    return Desired(path_of(group.namespace, group.name), body, _status(group), _learned(group), group.uid)


def path_of(namespace: str, group: str) -> str:
    """Of the object."""
    return f"{ROOT}/namespaces/{namespace}/affinitygroups/{object_name(group)}"


def homes(members: Iterable[MemberStatus]) -> str:
    """Where the members are, the most first: `node-7/1 node-3/0 +2`."""
    counted = Counter(f"{member.node}/{member.numa_nodes or '-'}" for member in members)
    ranked = sorted(counted, key=lambda home: (-counted[home], home))
    more = [f"+{len(ranked) - MOST_HOMES}"] if len(ranked) > MOST_HOMES else []
    return " ".join(ranked[:MOST_HOMES] + more)


def _status(group: GroupStatus) -> dict[str, Any]:
    members = sorted(group.members, key=lambda member: member.pod)
    shown = (*((_accepted(group.accepted),) if group.accepted else ()), *group.conditions)
    conditions = {"conditions": [_condition(each) for each in shown]} if shown else {}
    texts = {
        "homes": homes(members),
        "locality": "" if group.locality is None else f"{round(100 * group.locality)} %",
    }
    return {
        "memberCount": len(members),
        "members": [_member(member) for member in members[:MOST_MEMBERS]],
        **_present(texts),
        **conditions,
    }


def _accepted(accepted: Accepted) -> GroupCondition:
    reason = "PartlyIgnored" if accepted.problems else "AllInForce"
    text = "; ".join(accepted.problems)
    return GroupCondition(ACCEPTED, truth(accepted.problems), reason, text, accepted.since, accepted.generation)


def _condition(condition: GroupCondition) -> dict[str, Any]:
    text = condition.message
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "...",
        **({"observedGeneration": condition.generation} if condition.generation else {}),
        "lastTransitionTime": condition.since,
    }


def truth(problems: tuple[str, ...]) -> str:
    """The condition's status."""
    return "False" if problems else "True"


def _learned(group: GroupStatus) -> dict[str, Any] | None:
    if group.edges is None or group.learned is None:
        return None
    edges = group.edges
    heaviest = sorted(
        edges, key=lambda edge: (-edge.bytes_per_second, -edge.messages_per_second, edge.source, edge.target)
    )
    shown = [_edge(edge) for edge in heaviest[:MOST_EDGES]]
    return {"edgeCount": len(heaviest), "edges": shown, **_present({"learned": group.learned})}


def _member(member: MemberStatus) -> dict[str, str]:
    fields = {"pod": member.pod, "node": member.node, "numaNodes": member.numa_nodes, "workload": member.workload}
    return _present(fields)


def _present(texts: Mapping[str, str]) -> dict[str, str]:
    """An empty text is left out, which removes what was applied before: some API servers (1.20) take it for null."""
    return {name: text for name, text in texts.items() if text}


def _edge(edge: EdgeStatus) -> dict[str, Any]:
    rates = {"bytesPerSecond": edge.bytes_per_second, "messagesPerSecond": edge.messages_per_second}
    return {"source": edge.source, "target": edge.target, **rates}
