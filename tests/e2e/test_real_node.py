"""The whole path on this machine: Deployment, scheduler, extender, kubelet, containerd, NRI, cgroup."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

import pytest

from extender.kube.api import MERGE_PATCH
from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from numakin.placement.model.cpuset import CpuSet
from tests.cluster.conftest import made
from tests.cluster.workloads import Namespace
from tests.e2e.conftest import for_real_node
from tests.e2e.lab.node import Node, running
from tests.e2e.lab.pods import container, pod_spec, program, runnable
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = [pytest.mark.thorough, pytest.mark.runtime]

NODE = "real"
STATIC = {"cpuManagerPolicy": "static", "cpuManagerReconcilePeriod": "1s", "systemReserved": {"cpu": "500m"}}
"""The CPUs that are reserved can't be a container's own: at least one, as the kubelet rounds up."""

STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def cluster(kubernetes: Binaries, for_kubelet: Installation) -> Iterator[Cluster]:
    """One of its own for each runtime."""
    del for_kubelet
    yield from for_real_node(kubernetes, NODE)


@pytest.fixture(scope="module")
def node(
    cluster: Cluster,
    kubernetes: Binaries,
    for_kubelet: Installation,
    machine: SplitMachine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Node]:
    with running(cluster, kubernetes, for_kubelet, NODE, machine.sysfs, tmp_path_factory.mktemp("enforcer")) as made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster, node: Node) -> Iterator[Namespace]:
    yield from made(cluster)


def test_the_pods_of_a_deployment_run_where_the_extender_says(node: Node, namespace: Namespace, machine: SplitMachine):
    namespace.deploy(runnable("cart", 2), runnable("bank", 1))
    namespace.until_running(3)
    cpus = defaultdict(set)
    for pod in namespace.pods():
        assert namespace.reported_cpus(pod["metadata"]["name"]) == [node.cpus(pod)]
        cpus[pod["metadata"]["labels"]["app"]].add(node.cpus(pod))
    assert len(cpus["cart"]) == 1
    assert cpus["cart"] | cpus["bank"] == set(machine.halves)


def test_members_stay_while_the_kubelet_and_the_runtime_restart_and_the_next_joins_them(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    namespace.deploy(runnable("cart", 2))
    namespace.until_running(2)
    pods = namespace.pods()
    before = {node.pid(pod): node.cpus(pod) for pod in pods}
    node.kubelet.stop()
    node.runtime.restart()
    node.kubelet.start()
    node.enforcer.wait_registered()
    assert {node.pid(pod): node.cpus(pod) for pod in pods} == before
    cluster.kubectl("-n", namespace.name, "scale", "deployment/cart", "--replicas=3")
    namespace.until_running(3)
    assert {node.cpus(pod) for pod in namespace.pods()} == set(before.values())
    assert len(set(before.values())) == 1
    assert set(before.values()) <= set(machine.halves)


def test_whatever_makes_a_pod_its_containers_are_with_the_group(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    annotated = {"metadata": {"labels": {"app": "x"}, "annotations": {"group.numakin.io": "shop"}}}
    first = pod_spec(initContainers=[container("init", "true")], containers=[container("main"), container("sidecar")])
    job = {"template": annotated | {"spec": pod_spec(restartPolicy="Never")}}
    on_each = {"selector": {"matchLabels": {"app": "x"}}, "template": annotated | {"spec": pod_spec()}}
    for api, kind, spec in (("apps/v1", "DaemonSet", on_each), ("batch/v1", "Job", job)):
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
        cluster.kubectl("-n", namespace.name, "apply", "-f", "-", text=json.dumps(body))
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": first, "metadata": {"name": "pod", **annotated["metadata"]}}
    pod["metadata"]["labels"] = {"app": "pod"}
    cluster.kubectl("-n", namespace.name, "apply", "-f", "-", text=json.dumps(pod))
    namespace.until_running(3)
    pods = {pod["metadata"]["name"]: pod for pod in namespace.pods()}
    cpus = {node.cpus(pod) for pod in pods.values()} | {node.cpus(pods["pod"], "sidecar")}
    assert len(cpus) == 1
    assert cpus <= set(machine.halves)


def test_a_static_pod_is_with_its_group(cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine):
    namespace.deploy(runnable("cart", 1))
    namespace.until_running(1)
    meta = {"name": "static", "namespace": namespace.name, "annotations": {"group.numakin.io": "cart"}}
    manifest = node.kubelet.static_pods / "static.yaml"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec()}))
    try:
        namespace.until_running(2)
        cpus = {node.cpus(pod) for pod in namespace.pods()}
    finally:
        manifest.unlink()
    assert len(cpus) == 1
    assert cpus <= set(machine.halves)


def test_an_ephemeral_container_is_with_its_pod(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    namespace.deploy(runnable("cart", 1))
    namespace.until_running(1)
    (pod,) = namespace.pods()
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod['metadata']['name']}/ephemeralcontainers"
    patch = cluster.plane.release.ephemeral([program("debugger")])
    cluster.plane.api.request("PATCH", path, None, patch, MERGE_PATCH)
    cluster.until(lambda: node.pid(pod, "debugger") > 0, "the ephemeral container to run")
    assert node.cpus(pod, "debugger") == node.cpus(pod)
    assert node.cpus(pod) in machine.halves


def test_a_pod_that_is_resized_in_place_stays(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    if not cluster.plane.release.resizes_in_place:
        pytest.skip("this kubelet (before 1.33) resizes no pod in place; KUBERNETES_BIN of a newer one does")
    namespace.deploy(runnable("cart", 1))
    namespace.until_running(1)
    (pod,) = namespace.pods()
    before = node.pid(pod), node.cpus(pod)
    larger = {"name": "main", "resources": {"requests": {"cpu": "200m"}}}
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod['metadata']['name']}/resize"
    cluster.plane.api.request("PATCH", path, None, {"spec": {"containers": [larger]}}, STRATEGIC)

    def resized() -> bool:
        (status,) = namespace.pods()[0]["status"]["containerStatuses"]
        return bool(status.get("resources", {}).get("requests", {}).get("cpu") == "200m")

    cluster.until(resized, "the pod to be resized")
    cluster.until(lambda: bool(node.enforcer.log_records("container resized")), "the enforcer to see the new size")
    assert (node.pid(pod), node.cpus(pod)) == before
    assert node.cpus(pod) in machine.halves


@pytest.fixture
def static_policy(node: Node) -> Iterator[None]:
    """The kubelet assigns CPUs itself."""
    for config in (STATIC, {}):
        node.kubelet.stop()
        node.kubelet.configure(**config)
        node.kubelet.start()
        if config:
            yield


@pytest.mark.usefixtures("static_policy")
def test_cpusets_are_left_to_a_kubelet_that_assigns_cpus_itself(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    namespace.deploy(runnable("cart", 2))
    namespace.until_running(2)
    sharing = namespace.pods()
    cluster.until(lambda: all(node.yielded(pod) for pod in sharing), "the enforcer to yield for the kubelet's cpusets")
    cluster.until(
        lambda: {node.settled_cpus(pod) for pod in sharing} == {machine.whole}, "the pods to have the shared CPUs"
    )
    alone = runnable("bank", 1)
    (main,) = alone["spec"]["template"]["spec"]["containers"]
    main["resources"] = {kind: {"cpu": "1", "memory": "16Mi"} for kind in ("requests", "limits")}
    namespace.deploy(alone)
    namespace.until_running(3)
    (owner,) = (pod for pod in namespace.pods() if pod["metadata"]["labels"]["app"] == "bank")

    def as_the_kubelet_has_it() -> bool:
        own, *others = (CpuSet.parse(node.settled_cpus(pod)) for pod in (owner, *sharing))
        return bool(own) and all(
            shared and not own & shared and own | shared == CpuSet.parse(machine.whole) for shared in others
        )

    cluster.until(as_the_kubelet_has_it, "the pod to have a CPU that the others do not use")
