"""Definitions of other controllers' kinds, for an API server of the tests' own: their names, and any fields."""

from __future__ import annotations

from typing import Any

from extender.kube.objects.told_kinds import ToldKind

NAMES = {"podgroups": "PodGroup", "workloads": "Workload", "jobsets": "JobSet", "rollouts": "Rollout"}

BUILT_IN = frozenset({"apps", "batch"})
"""The groups whose kinds every API server has."""


def defined(kind: ToldKind) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = NAMES[kind.plural]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.kind,
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": name, "listKind": f"{name}List", "plural": kind.plural, "singular": name.lower()},
            "versions": [
                {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
            ],
        },
    }
