"""Pods and nodes are reduced to what placement needs."""

import json

import pytest

from extender.cluster.pods import ContainerRow, OwnerRow
from extender.kube.stream import nodes, pods


def row(pod: dict) -> object:
    return pods().row(json.dumps(pod).encode())


POD = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"pod-template-hash": "abc"},
        "annotations": {"group.numakin.io": "cart", "kubernetes.io/config.seen": "x", "size.numakin.io/pod": "3"},
        "ownerReferences": [
            {"kind": "Fan", "name": "f", "uid": "o1"},
            {"kind": "ReplicaSet", "name": "web-abc", "uid": "o2", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "hostNetwork": True,
        "initContainers": [
            {"name": "init"},
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        ],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}}}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.7"},
}


def test_a_pod_has_all_that_placement_asks_for():
    found = row(POD)
    assert (found.uid, found.namespace, found.name, found.node) == ("u1", "shop", "web-1", "n1")
    assert (found.phase, found.ip, found.host_network) == ("Running", "10.0.0.7", True)
    assert found.annotations == {"group.numakin.io": "cart", "size.numakin.io/pod": "3"}
    assert found.owner == OwnerRow("Deployment", "web")
    assert found.workload == "shop/Deployment/web"
    assert found.containers == (
        ContainerRow("init", init=True),
        ContainerRow("proxy", {"cpu": "100m"}, init=True, restartable=True),
        ContainerRow("main", {"cpu": "1"}, {"memory": "1Gi"}),
    )


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "a", "annotations": None}, "spec": {"containers": None, "nodeName": None}, "status": {}},
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "x", "resources": {"limits": None}}]}, "new": []},
    ],
    ids=["bare", "nulls", "unknown fields"],
)
def test_whatever_may_be_missing_may_be_missing(pod):
    assert row(pod).name == "a"


def test_replicas_share_their_containers():
    reader = pods()
    one, other = (reader.row(json.dumps(POD).encode()) for _ in range(2))
    assert one.containers is other.containers


def test_a_node_is_ready_when_its_condition_says_so():
    read = nodes().row
    conditions = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1"}]
    body = {"metadata": {"name": "n1", "uid": "u"}, "status": {"conditions": conditions, "addresses": addresses}}
    ready = read(json.dumps(body).encode())
    assert (ready.name, ready.ready, ready.addresses) == ("n1", True, ("10.0.0.1", "n1"))
    assert not read(b'{"metadata":{"name":"n2"}}').ready
