"""The Services of the manifests, and what their pods are made of."""

from typing import Any

from tests.manifests.rendered import one

ASKED, TOLD = "numakin-extender", "numakin-extender-replicas"
"""The Services of kube-scheduler and of enforcers."""


def pod_specs(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("Deployment", "DaemonSet")]


def arguments(objects: list[dict[str, Any]], kind: str, name: str) -> list[str]:
    container = one(objects, kind, name)["spec"]["template"]["spec"]["containers"][0]
    return [argument.replace("$(NODE_NAME)", "node-1") for argument in container["args"]]
