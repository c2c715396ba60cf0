"""Devices of a real kubelet's device plugin: what is free is known to the extender, and a pod is near what it was given."""

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
from tests.e2e.lab.device_plugin import plugged
from tests.e2e.lab.node import Node, running
from tests.e2e.lab.pods import runnable
from tests.e2e.lab.runtimes import Installation
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = [pytest.mark.thorough, pytest.mark.runtime]

NODE = "real"
RESOURCE = "example.com/card"
DEVICES = {"card-0": 0, "card-1": 1}


@pytest.fixture(scope="module")
def cluster(kubernetes: Binaries, for_kubelet: Installation) -> Iterator[Cluster]:
    """One of its own for each runtime."""
    del for_kubelet
    if not Release(kubernetes.minor).says_free_devices:
        pytest.skip("a kubelet before 1.23 does not say which devices are free; KUBERNETES_BIN of a newer one does")
    yield from for_real_node(kubernetes, NODE)


@pytest.fixture(scope="module")
def node(
    cluster: Cluster,
    kubernetes: Binaries,
    for_kubelet: Installation,
    machine: SplitMachine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Node]:
    """With two devices, each near to one NUMA node."""
    folder = tmp_path_factory.mktemp("enforcer")
    with (
        running(cluster, kubernetes, for_kubelet, NODE, machine.sysfs, folder) as made,
        plugged(made.kubelet.device_plugins, RESOURCE, DEVICES),
    ):
        yield made


@pytest.fixture
def namespace(cluster: Cluster, node: Node) -> Iterator[Namespace]:
    yield from made(cluster)


def with_device(name: str) -> Deployment:
    made = runnable(name, 1)
    (main,) = made["spec"]["template"]["spec"]["containers"]
    main["resources"]["limits"] = {RESOURCE: "1"}
    return made


def free(cluster: Cluster) -> dict[str, int]:
    """By NUMA nodes, as the extender knows it."""
    rows: list[dict[str, Any]] = [
        row for each in cluster.extenders[0].get("/api/v1/nodes")["nodes"] for row in each["free_devices"]
    ]
    return {row["numa_nodes"]: row["free"] for row in rows if row["resource"] == RESOURCE}


def test_each_pod_is_near_the_device_that_the_kubelet_gave_it_and_its_group_with_it(
    cluster: Cluster, node: Node, namespace: Namespace, machine: SplitMachine
):
    cluster.until(lambda: free(cluster) == {"0": 1, "1": 1}, "both devices to be known as free")
    namespace.deploy(with_device("cart"))
    namespace.until_running(1)
    cluster.until(lambda: sum(free(cluster).values()) == 1, "one device to be known as taken")
    (taken,) = (int(numa_node) for numa_node, left in free(cluster).items() if not left)
    (first,) = namespace.pods()
    assert node.cpus(first) == machine.halves[taken]
    namespace.deploy(with_device("bank"))
    namespace.until_running(2)
    (second,) = (pod for pod in namespace.pods() if pod["metadata"]["labels"]["app"] == "bank")
    assert node.cpus(second) == machine.halves[1 - taken]
    cluster.until(lambda: free(cluster) == {"0": 0, "1": 0}, "both devices to be known as taken")
    kin = runnable("late", 1)
    kin["spec"]["template"]["metadata"]["annotations"]["group.numakin.io"] = "bank"
    namespace.deploy(kin)
    namespace.until_running(3)
    (third,) = (pod for pod in namespace.pods() if pod["metadata"]["labels"]["app"] == "late")
    assert node.cpus(third) == node.cpus(second)
