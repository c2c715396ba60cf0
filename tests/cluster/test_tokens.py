"""How a real API server says which node an enforcer's token speaks for: from 1.30 on by itself, before by its pod."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.api import Api
from extender.kube.config import connect
from extender.kube.tokens import AUDIENCE, BadToken, node_of
from lab.cluster.cluster import Cluster
from tests.cluster.workloads import Namespace


@pytest.fixture
def extender(ten_nodes: Cluster) -> Api:
    """The API server, with the extender's own rights."""
    return connect(str(ten_nodes.folder / "extender.kubeconfig"), {})


def token_of(namespace: Namespace, pod: str, node: str = "") -> str:
    """Of the default service account, bound to a new pod, that is on the node if any is named."""
    admin, path = namespace.cluster.plane.api, f"/api/v1/namespaces/{namespace.name}"
    container = {"name": "app", "image": "none"}
    spec = {"containers": [container], **({"nodeName": node} if node else {"schedulerName": "none"})}
    made = admin.request("POST", f"{path}/pods", None, {"metadata": {"name": pod}, "spec": spec}).json()
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": made["metadata"]["uid"]}
    request: dict[str, Any] = {"spec": {"audiences": [AUDIENCE], "boundObjectRef": bound}}
    answer = admin.request("POST", f"{path}/serviceaccounts/default/token", None, request).json()
    token: str = answer["status"]["token"]
    return token


def test_an_enforcers_token_speaks_for_its_pods_node(namespace: Namespace, extender: Api):
    assert node_of(extender, token_of(namespace, "here", "node-3"), f"{namespace.name}:default") == "node-3"


def test_the_token_of_a_pod_that_is_on_no_node_speaks_for_none(namespace: Namespace, extender: Api):
    with pytest.raises(BadToken, match=r"on no node|not bound to a pod on a node"):
        node_of(extender, token_of(namespace, "nowhere"), f"{namespace.name}:default")
