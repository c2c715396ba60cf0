"""The API server of the simulated cluster: the stand-in, with what an installation of numakin finds and brings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.standins.apiserver import ApiServer
from lab.standins.patience import until

MANIFESTS = Path(__file__).parents[3] / "manifests" / "base"

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

NODE_RESOURCE_TOPOLOGY: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "noderesourcetopologies.topology.node.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
    },
    "spec": {
        "group": "topology.node.k8s.io",
        "scope": "Cluster",
        "names": {
            "kind": "NodeResourceTopology",
            "listKind": "NodeResourceTopologyList",
            "plural": "noderesourcetopologies",
            "singular": "noderesourcetopology",
            "shortNames": ["node-res-topo"],
        },
        "versions": [{"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": FREE}}],
    },
}
"""The kind's names; its schema left open."""


class ControlPlane:
    """url: where it listens; it does until its process ends. nodes: their names."""

    def __init__(self, kubeconfig: Path, nodes: Sequence[str]) -> None:
        self._api = ApiServer()
        self._api.start()
        self._api.create("v1", "namespaces", {"metadata": {"name": "numakin"}})
        self._api.define(yaml.safe_load((MANIFESTS / "affinitygroups-crd.yaml").read_text()))
        self._api.define(NODE_RESOURCE_TOPOLOGY)
        for name in nodes:
            self._api.create_node(name)
        self._api.kubeconfig(kubeconfig)

    def url(self) -> str:
        return self._api.url

    def watched(self, seconds: float) -> bool:
        """Whether a client watches pods within that time."""
        try:
            until(lambda: self._api.watches("pods") > 0, "pods are watched", seconds)
        except TimeoutError:
            return False
        return True
