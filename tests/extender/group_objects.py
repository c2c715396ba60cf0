"""A group's object and its members at a stand-in API server."""

from __future__ import annotations

from typing import Any

from lab.standins.apiserver import ApiServer
from tests.manifests.rendered import files, one

GROUPS = "numakin.io/v1alpha1"
DEFINITION = one(files(), "CustomResourceDefinition", "affinitygroups.numakin.io")
MEMBER = {"group.numakin.io": "shop"}


def until_watched(server: ApiServer) -> None:
    """An extender sees what it places by."""
    for kind in ("pods", "nodes", "namespaces", "affinitygroups"):
        server.wait_for("watches", 1, resource=kind)


def stored(server: ApiServer) -> dict[str, Any]:
    """The object, empty while there is none."""
    result = server.store.get(server.answers.kind(GROUPS, "affinitygroups"), ("default", "shop"))
    return result.object if result else {}


def status(server: ApiServer) -> dict[str, Any]:
    return stored(server).get("status", {})


def condition(server: ApiServer, kind: str) -> dict[str, Any]:
    """Empty while there is none."""
    return next((each for each in status(server).get("conditions", ()) if each["type"] == kind), {})


def pod(server: ApiServer, name: str, cpu: str = "500m", **annotations: str) -> dict[str, Any]:
    """A new member, of the StatefulSet that its name says."""
    keys = MEMBER | {f"{key}.numakin.io": value for key, value in annotations.items()}
    workload = name.rpartition("-")[0]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "uid": workload}
    main = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return server.create_pod(name, annotations=keys, containers=[main], owner=owner)
