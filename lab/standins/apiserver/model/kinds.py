"""The kinds that are served: a table of the built-in ones, and custom ones by their CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_METADATA = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True)
class Kind:
    """One served version of a resource. custom: it came by a CustomResourceDefinition."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: frozenset[str] = frozenset()
    field_labels: tuple[str, ...] = _METADATA
    create_on_update: bool = False
    custom: bool = False

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.plural


_POD_LABELS = tuple(f"spec.{name}" for name in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName"))
_EVENT_LABELS = tuple(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid"))


def _kind(api_version: str, kind: str, plural: str, *subresources: str, namespaced: bool = True, **more: Any) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, kind, plural, namespaced=namespaced, subresources=frozenset(subresources), **more)


BUILT_IN = (
    _kind("v1", "Namespace", "namespaces", "status", namespaced=False),
    _kind("v1", "Node", "nodes", "status", namespaced=False),
    _kind(
        "v1", "Pod", "pods", "status", "binding", "eviction", "proxy", "exec", "log",
        field_labels=(*_METADATA, *_POD_LABELS, "status.phase", "status.podIP"),
    ),
    _kind("v1", "Service", "services", "status", "proxy"),
    _kind("v1", "Binding", "bindings"),
    _kind("v1", "ServiceAccount", "serviceaccounts", "token"),
    _kind("v1", "Event", "events", field_labels=(*_METADATA, *_EVENT_LABELS, "reason", "type", "source")),
    _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "status"),
    _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    _kind("apps/v1", "Deployment", "deployments", "status"),
    _kind("apps/v1", "StatefulSet", "statefulsets", "status"),
    _kind("batch/v1", "Job", "jobs", "status"),
    _kind("v1", "Secret", "secrets"),
    _kind("v1", "ConfigMap", "configmaps"),
    _kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False),
    _kind("coordination.k8s.io/v1", "Lease", "leases", create_on_update=True),
    _kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False),
    _kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
)  # fmt: skip

UNSTORED = frozenset({"bindings", "tokenreviews", "subjectaccessreviews"})
"""Kinds that can only be POSTed: their objects are questions, or commands."""


def from_definition(definition: Mapping[str, Any]) -> list[Kind]:
    """The kinds of a CustomResourceDefinition's served versions."""
    spec = definition["spec"]
    return [
        Kind(
            spec["group"],
            version["name"],
            spec["names"]["kind"],
            spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
            subresources=frozenset(version.get("subresources", {})),
            custom=True,
        )
        for version in spec["versions"]
        if version["served"]
    ]
