"""The whole path on a node with four NUMA nodes (emulated): Deployment, scheduler, extender, kubelet, containerd, NRI,
cgroup; the control plane runs on this machine.

One boot runs tests/e2e/guest/real_node.py; each test here reads what it printed.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.binaries import Binaries
from cluster.cluster import Cluster
from cluster.credentials import EMULATOR_HOST
from tests.cluster.workloads import Deployment, Namespace, member
from tests.e2e.conftest import for_real_node
from tests.e2e.guest import real_node
from tests.e2e.lab import image, vm
from tests.e2e.lab.kubelet import configuration

pytestmark = [pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

NODE = "numa"
NUMA_NODES = {"0": 0, "1": 1, "2": 2, "3": 3}
"""By their CPUs."""

REPLICAS = {"shop": 3, "bank": 2}


@pytest.fixture(scope="module")
def cluster(numavm: Callable[..., vm.Result], kubernetes: Binaries) -> Iterator[Cluster]:
    yield from for_real_node(kubernetes, NODE)


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Namespace:
    """With pods that wait for their node."""
    made = Namespace(cluster, "shops")
    made.make()
    made.deploy(*(runnable(name, replicas) for name, replicas in REPLICAS.items()))
    return made


@pytest.fixture(scope="module")
def containers(
    cluster: Cluster, kubernetes: Binaries, namespace: Namespace, numavm: Callable[..., vm.Result], tmp_path_factory
) -> dict[str, dict[str, Any]]:
    """By pod."""
    shared = what_the_kubelet_needs(cluster, kubernetes, tmp_path_factory.mktemp("node"))
    extender = f"{EMULATOR_HOST}:{cluster.extenders[0].grpc.rpartition(':')[2]}"
    command = ["python3", "-m", real_node.__name__, NODE, extender, str(sum(REPLICAS.values()))]
    share = f"local,path={shared},mount_tag={real_node.SHARED},security_model=none,readonly=on"
    network = ("-netdev", "user,id=outside", "-device", "virtio-net-pci,netdev=outside")
    result = numavm("4x1", command, options=("--qemu", *network, "-virtfs", share))
    assert result.status == 0, f"status {result.status}\n{result.messages}\n{what_became_of(namespace)}"
    print(result.output)
    return {row["pod"]: row for row in result.records()}


def what_the_kubelet_needs(cluster: Cluster, kubernetes: Binaries, folder: Path) -> Path:
    release = cluster.plane.release
    shutil.copy(kubernetes["kubelet"], folder / real_node.KUBELET)
    cluster.kubelet_credentials(NODE, folder / real_node.KUBECONFIG, host=EMULATOR_HOST)
    (folder / real_node.CONFIG).write_text(json.dumps(release.kubelet_config(configuration())))
    (folder / "options.json").write_text(json.dumps(release.kubelet_options))
    return folder


def what_became_of(namespace: Namespace) -> str:
    """The node, the pods and their events, as the API server has them."""
    kinds = "nodes", "pods", "events"
    return "\n".join(namespace.cluster.kubectl("-n", namespace.name, "get", kind, "-o", "wide") for kind in kinds)


def runnable(name: str, replicas: int) -> Deployment:
    deployment = member(name, replicas)
    resources = {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    container = {"name": "main", "image": image.NAME, "imagePullPolicy": "Never", "command": list(real_node.COMMAND)}
    deployment["spec"]["template"]["spec"] |= {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container | {"resources": resources}],
    }
    return deployment


def test_the_members_of_a_deployment_run_on_the_cpus_of_one_numa_node(containers: dict[str, dict[str, Any]]) -> None:
    assert len(containers) == sum(REPLICAS.values())
    homes = defaultdict(set)
    for pod, row in containers.items():
        assert row["allowed"]["cpus"] == row["cgroup"]["cpus"]
        homes[pod.partition("-")[0]].add(NUMA_NODES[row["allowed"]["cpus"]])
    assert [len(of_group) for of_group in homes.values()] == [1, 1]
    assert homes["shop"] != homes["bank"]


def test_their_memory_is_on_the_numa_node_of_their_cpus(containers: dict[str, dict[str, Any]]) -> None:
    for row in containers.values():
        home = str(NUMA_NODES[row["allowed"]["cpus"]])
        assert row["allowed"]["mems"] == home
        assert row["memory"][home] > 0.95 * sum(row["memory"].values())


def test_they_run_where_the_extender_says(namespace: Namespace, containers: dict[str, dict[str, Any]]) -> None:
    for pod, row in containers.items():
        assert namespace.reported_cpus(pod) == [row["allowed"]["cpus"]]
