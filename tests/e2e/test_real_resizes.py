"""What a pod has of its own, and what is resized in place, on a real kubelet: exclusive CPUs on a machine that is shown
as one NUMA node of all its CPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from lab.cluster.release import Release
from tests.cluster.conftest import made
from tests.cluster.workloads import Deployment, Namespace
from tests.e2e.conftest import for_real_node
from tests.e2e.lab.node import Node, running
from tests.e2e.lab.pods import pod_spec, program, runnable
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine, split

pytestmark = [pytest.mark.thorough, pytest.mark.runtime]

NODE = "real"
STRATEGIC = "application/strategic-merge-patch+json"
OWN = {"group.numakin.io": "shop", "cpus.numakin.io": "exclusive"}


@pytest.fixture(scope="module")
def cluster(kubernetes: Binaries, for_kubelet: Installation) -> Iterator[Cluster]:
    """One of its own for each runtime."""
    del for_kubelet
    if not Release(kubernetes.minor).has_pod_resources:
        pytest.skip(
            "pods have resources of their own, and are resized in place, from Kubernetes 1.34 on: KUBERNETES_BIN"
        )
    yield from for_real_node(kubernetes, NODE)


@pytest.fixture(scope="module")
def node(
    cluster: Cluster, kubernetes: Binaries, for_kubelet: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    whole = split(tmp_path_factory.mktemp("sysfs"), numa_nodes=1)
    with running(cluster, kubernetes, for_kubelet, NODE, whole.sysfs, tmp_path_factory.mktemp("enforcer")) as made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster, node: Node) -> Iterator[Namespace]:
    yield from made(cluster)


def amounts(cpu: str) -> dict[str, Any]:
    return {kind: {"cpu": cpu, "memory": "32Mi"} for kind in ("requests", "limits")}


def exclusive(name: str, **spec: Any) -> Deployment:
    made = runnable(name, 1)
    template = made["spec"]["template"]
    template["metadata"]["annotations"] |= OWN
    template["spec"] = pod_spec(**spec)
    return made


def resize(namespace: Namespace, spec: dict[str, Any]) -> None:
    (pod,) = namespace.pods()
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod['metadata']['name']}/resize"
    namespace.cluster.plane.api.request("PATCH", path, None, {"spec": spec}, STRATEGIC)


def cpus(node: Node, namespace: Namespace, *containers: str) -> set[str]:
    """Where they may run, by the kernel's word."""
    (pod,) = namespace.pods()
    return {node.settled_cpus(pod, name) for name in containers}


def one_half(found: set[str], machine: SplitMachine) -> bool:
    return len(found) == 1 and found < set(machine.halves)


def test_containers_that_ask_for_nothing_share_their_pod_s_exclusive_cpu_until_it_asks_for_more_than_can_be_spared(
    node: Node, namespace: Namespace, machine: SplitMachine
):
    containers = [program("first"), program("second")]
    namespace.deploy(exclusive("cart", resources=amounts("1"), containers=containers))
    namespace.until_running(1)
    assert one_half(cpus(node, namespace, "first", "second"), machine)
    if not namespace.cluster.plane.release.resizes_pod_resources:
        return
    (pod,) = namespace.pods()
    resize(namespace, {"resources": amounts("1900m")})
    # No runtime's word of it has an answer with updates, and no event follows that has one.
    whole = [machine.whole] * 2
    namespace.cluster.until(
        lambda: [node.settled_cpus(pod, name) for name in ("first", "second")] == whole, "both to have all CPUs"
    )


def test_a_container_that_is_resized_has_as_many_exclusive_cpus_as_it_asks_for_and_is_never_restarted(
    node: Node, namespace: Namespace, machine: SplitMachine
):
    main = program("main") | {"resources": amounts("1")}
    namespace.deploy(exclusive("bank", containers=[main]))
    namespace.until_running(1)
    (pod,) = namespace.pods()
    pid, until = node.pid(pod), namespace.cluster.until
    assert one_half(cpus(node, namespace, "main"), machine)
    resize(namespace, {"containers": [{"name": "main", "resources": amounts("2")}]})
    until(lambda: cpus(node, namespace, "main") == {machine.whole}, "both CPUs to be its own")
    resize(namespace, {"containers": [{"name": "main", "resources": amounts("1")}]})
    until(lambda: one_half(cpus(node, namespace, "main"), machine), "one CPU to be its own again")
    assert node.pid(pod) == pid
