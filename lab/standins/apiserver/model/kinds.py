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


_POD_LABELS = (*_METADATA, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName")
_EVENT_LABELS = tuple(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid"))

BUILT_IN = (
    Kind("", "v1", "Namespace", "namespaces", namespaced=False, subresources=frozenset({"status"})),
    Kind("", "v1", "Node", "nodes", namespaced=False, subresources=frozenset({"status"})),
    Kind(
        "",
        "v1",
        "Pod",
        "pods",
        namespaced=True,
        subresources=frozenset({"status", "binding", "eviction", "proxy", "exec", "log"}),
        field_labels=(*_POD_LABELS, "status.phase", "status.podIP"),
    ),
    Kind("", "v1", "Service", "services", namespaced=True, subresources=frozenset({"status", "proxy"})),
    Kind("", "v1", "Binding", "bindings", namespaced=True),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True, subresources=frozenset({"token"})),
    Kind(
        "",
        "v1",
        "Event",
        "events",
        namespaced=True,
        field_labels=(*_METADATA, *_EVENT_LABELS, "reason", "type", "source"),
    ),
    Kind(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        namespaced=True,
        subresources=frozenset({"status"}),
    ),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", namespaced=True),
    Kind("apps", "v1", "Deployment", "deployments", namespaced=True, subresources=frozenset({"status"})),
    Kind("apps", "v1", "StatefulSet", "statefulsets", namespaced=True, subresources=frozenset({"status"})),
    Kind("batch", "v1", "Job", "jobs", namespaced=True, subresources=frozenset({"status"})),
    Kind("", "v1", "Secret", "secrets", namespaced=True),
    Kind("", "v1", "ConfigMap", "configmaps", namespaced=True),
    Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True, create_on_update=True),
    Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False),
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
)

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
