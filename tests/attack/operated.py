"""One node with its runtime and its enforcer, an extender, and an API server on which an operator sets what namespaces may."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from lab.standins.apiserver.server import ADMIN_TOKEN
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.records import Container
from numakin.placement.model.cpuset import CpuSet
from tests.extender.site import NodeSite


class Site(NodeSite):
    """options: the enforcer's."""

    def __init__(self, folder: Path, *options: str, nri_version: str = "0.8.0") -> None:
        super().__init__(folder, *options, nri_version=nri_version)

    def namespace(self, name: str) -> str:
        self.server.create("v1", "namespaces", {"metadata": {"name": name}})
        return name

    def annotate(self, namespace: str, **settings: str | None) -> None:
        """As an operator does it to the Namespace object."""
        annotations = {f"numakin.io/{name.replace('_', '-')}": text for name, text in settings.items()}
        self.server.patch("v1", "namespaces", namespace, {"metadata": {"annotations": annotations}})

    def limit(self, namespace: str, **limits: str | None) -> None:
        """Annotates it, and waits until the node's enforcer goes by that."""
        before = self.quotas()
        self.annotate(namespace, **limits)
        until(lambda: self.quotas() != before, "the enforcer goes by the new limits")

    def quotas(self) -> dict[str, str]:
        quotas: dict[str, str] = self.enforcer.status()["quotas"]
        return quotas

    def run(self, name: str, namespace: str, annotations: dict[str, str], cpus: int) -> CpuSet:
        """The CPUs of a pod's container, which must be running."""
        resources = {"requests": {"cpu": str(cpus)}}
        pod = self.server.create_pod(
            name,
            namespace,
            annotations=annotations,
            containers=[{"name": "main", "image": "x", "resources": resources}],
        )
        sandbox = self.runtime.run_pod(name, namespace, uid=pod["metadata"]["uid"], annotations=annotations)
        return self.cpus(self.runtime.run_container(sandbox, "main", cpu_request=cpus))

    def cpus(self, container: Container) -> CpuSet:
        """As the runtime has them now."""
        return CpuSet.parse(self.runtime.containers[container.id].resources.cpu.cpus)

    def reasons(self, pod: str) -> list[str]:
        """Why NAMESPACE/NAME is where it is, as its node says."""
        containers = (row for row in self.enforcer.status()["containers"] if row["pod"] == pod)
        return [reason for row in containers for reason in row["reasons"] if "quota" in reason]

    def messages(self, namespace: str) -> list[str]:
        """Of the Events there."""
        url = f"{self.server.url}/api/v1/namespaces/{namespace}/events"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return [event["message"] for event in json.load(answer)["items"]]
