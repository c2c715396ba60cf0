"""numakin as its manifests install it, on a real API server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from lab.cluster.cluster import Cluster
from tests.cluster.workloads import Namespace, member
from tests.manifests import foreign
from tests.manifests.rendered import WHOLE, rendered


def definition(api_version: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Of a kind that is not ours, as its owner would have installed it."""
    group, _, version = api_version.partition("/")
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [served],
        },
    }


def at_once(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, but that an update waits for no node before it comes to the next."""
    result = copy.deepcopy(objects)
    for each in result:
        if each["kind"] == "DaemonSet":
            each["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = "100%"
    return result


@pytest.fixture(scope="module")
def foreign_kinds(ten_nodes: Cluster) -> None:
    ten_nodes.apply(definition(*of, schema) for of, schema in foreign.SCHEMAS.items())
    ten_nodes.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")


@pytest.mark.usefixtures("foreign_kinds")
@pytest.mark.parametrize("overlay", WHOLE)
def test_every_overlay_can_be_applied_over_the_others(ten_nodes: Cluster, overlay: str):
    objects = rendered(overlay)
    output = ten_nodes.apply(at_once(objects)).splitlines()
    assert len(output) == len(objects)
    assert all(line.endswith((" created", " configured", " unchanged")) for line in output)
    for kind in ("daemonset/numakin-enforcer", "deployment/numakin-extender"):
        ten_nodes.kubectl("-n", "numakin", "rollout", "status", kind, "--timeout=180s")


def conditions(obj: dict) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


def test_the_definition_of_affinity_groups_is_established(ten_nodes: Cluster):
    definition = json.loads(ten_nodes.kubectl("get", "crd", "affinitygroups.numakin.io", "-o", "json"))
    assert conditions(definition)["Established"] == "True"
    assert conditions(definition)["NamesAccepted"] == "True"


def test_the_controllers_make_a_pod_for_every_enforcer_and_replica(ten_nodes: Cluster):
    ten_nodes.kubectl("-n", "numakin", "rollout", "status", "daemonset/numakin-enforcer", "--timeout=180s")
    ten_nodes.kubectl("-n", "numakin", "rollout", "status", "deployment/numakin-extender", "--timeout=180s")


def test_the_extender_publishes_the_group_that_runs(ten_nodes: Cluster, namespace: Namespace):
    namespace.deploy(member("shop", 3))
    namespace.until_running(3)

    def published() -> bool:
        groups = json.loads(ten_nodes.kubectl("-n", namespace.name, "get", "affinitygroups", "-o", "json"))["items"]
        return [group.get("status", {}).get("memberCount") for group in groups] == [3]

    ten_nodes.until(published, "the group's object with its three members")


def topologies(cluster: Cluster) -> set[str]:
    return {
        each["metadata"]["name"] for each in json.loads(cluster.kubectl("get", "node-res-topo", "-o", "json"))["items"]
    }


def test_a_node_that_is_deleted_takes_its_published_topology_with_it(ten_nodes: Cluster):
    ten_nodes.until(lambda: topologies(ten_nodes) == set(ten_nodes.nodes), "a topology for each node")
    ten_nodes.kubectl("delete", "node", "node-9")
    try:
        ten_nodes.until(lambda: "node-9" not in topologies(ten_nodes), "the deleted node's topology to go")
    finally:
        ten_nodes.register(ten_nodes.nodes["node-9"])
    ten_nodes.until(lambda: "node-9" in topologies(ten_nodes), "the topology of the node that came back")
