"""The parts of a v1.Pod's JSON that the API server and kube-scheduler send alike: owners, containers, resources."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern

import msgspec

from extender.state.pods import ContainerRow, OwnerRow, owner_row
from numakin.placement.model.workload import top_owner

Amounts = Mapping[str, str | int | float]


class OwnerReference(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Resources(msgspec.Struct):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class Container(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None


class SchedulingGroup(msgspec.Struct, rename="camel"):
    """Since 1.36."""

    pod_group_name: str | None = None

    @property
    def name(self) -> str:
        return self.pod_group_name or ""


class WorkloadRef(msgspec.Struct, rename="camel"):
    """Of 1.35, in place of a scheduling group."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str | None = None

    @property
    def group(self) -> str:
        """Each replica of a group is scheduled by itself. No PodGroup has such a name."""
        return ".".join(filter(None, (self.name, self.pod_group, self.pod_group_replica_key)))


def scheduled_with(group: SchedulingGroup | None, workload: WorkloadRef | None) -> str:
    """The name of what the pod is scheduled with; empty: by itself."""
    return group.name if group else workload.group if workload else ""


NO_RESOURCES = Resources()


def controller(references: list[OwnerReference] | None) -> OwnerReference | None:
    """The one among an object's owners that manages it."""
    return next((reference for reference in references or () if reference.controller), None)


def workload_owner(references: list[OwnerReference] | None, labels: Mapping[str, str]) -> OwnerRow | None:
    """Of a pod with these labels."""
    owner = controller(references)
    if owner is None:
        return None
    kind, name = top_owner(owner.kind, owner.name, labels)
    uid = owner.uid if (kind, name) == (owner.kind, owner.name) else ""
    return owner_row(intern(kind), intern(name), uid)


def container_row(container: Container, *, init: bool) -> ContainerRow:
    resources = container.resources or NO_RESOURCES
    return ContainerRow(
        name=container.name,
        requests=amounts(resources.requests),
        limits=amounts(resources.limits),
        init=init,
        restartable=init and container.restart_policy == "Always",
    )


def amounts(given: Amounts | None) -> dict[str, str]:
    """The API server sends quantities as strings; clients of older ones were known to store bare numbers."""
    return {intern(name): str(amount) for name, amount in (given or {}).items()}
