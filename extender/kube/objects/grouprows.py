"""What the AffinityGroup objects say, as the API server reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from extender.kube.objects import groupspec
from extender.kube.objects.affinitygroup import (
    ACCEPTED,
    GROUP_KEY,
    ROOT,
    Accepted,
    GroupCondition,
    object_name,
    path_of,
    truth,
)
from extender.kube.publish import LEARNED, MANAGER, Unwanted
from extender.kube.rows import Metadata
from extender.kube.stream import Resource, namespaced_name, resource
from extender.state import regroup_record
from extender.state.group_spec import GroupSpec
from extender.state.regroup_record import NO_RECORD, RegroupRecord


@dataclass(frozen=True, slots=True)
class GroupRow:
    """What an object says: the operator's settings, and what an extender before us learned. spec: None where there is
    none. problems: what of it does not count. ours: every field of the object was written by an extender. conditions:
    as they are there, by type. regroup: how it is brought together again.
    """

    namespace: str
    name: str
    spec: GroupSpec | None = None
    problems: tuple[str, ...] = ()
    learned: str = ""
    uid: str = ""
    revision: str = ""
    generation: int = 0
    ours: bool = False
    conditions: Mapping[str, GroupCondition] = field(default_factory=dict, hash=False)
    regroup: RegroupRecord = NO_RECORD

    @property
    def group(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """NAMESPACE/NAME of the object."""
        return f"{self.namespace}/{object_name(self.name)}"

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    def judged(self, now: str) -> Accepted | None:
        """now: as a condition's `since`."""
        if self.spec is None:
            return None
        condition = GroupCondition(ACCEPTED, truth(self.problems), since=now).after(self.conditions.get(ACCEPTED))
        return Accepted(self.problems, self.generation, condition.since)

    @property
    def unwanted(self) -> Unwanted:
        return Unwanted(self.path, self.uid, self.revision)


def affinity_groups() -> Resource[GroupRow]:
    """All groups' objects, to list and watch."""
    path = f"{ROOT}/affinitygroups"
    return resource(path, _Group, _row, key=lambda row: row.key, gone_key=namespaced_name)


class _GroupCondition(msgspec.Struct, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class _GroupObjectStatus(msgspec.Struct):
    learned: str = ""
    conditions: tuple[_GroupCondition, ...] = ()


class _Manager(msgspec.Struct):
    manager: str = ""


class _GroupMetadata(Metadata, rename="camel"):
    generation: int = 0
    managed_fields: tuple[_Manager, ...] = ()


class _Group(msgspec.Struct):
    metadata: _GroupMetadata
    spec: Any = None
    status: _GroupObjectStatus = msgspec.field(default_factory=_GroupObjectStatus)


def _row(group: _Group) -> GroupRow:
    metadata = group.metadata
    spec, problems = groupspec.read(metadata.namespace, group.spec)
    managers = {managed_field.manager for managed_field in metadata.managed_fields}
    return GroupRow(
        namespace=metadata.namespace,
        name=_group_name(metadata),
        spec=None if group.spec is None else spec,
        problems=problems,
        learned=group.status.learned,
        uid=metadata.uid,
        revision=metadata.resource_version,
        generation=metadata.generation,
        ours=bool(managers) and managers <= {MANAGER, LEARNED},
        conditions={
            each.type: GroupCondition(each.type, each.status, each.reason, each.message, each.last_transition_time)
            for each in group.status.conditions
        },
        regroup=regroup_record.read(metadata.annotations),
    )


def _group_name(metadata: Metadata) -> str:
    """The object's own, but for a group whose name can't be one."""
    annotated = (metadata.annotations or {}).get(GROUP_KEY, "")
    return annotated if annotated and object_name(annotated) == metadata.name else metadata.name
