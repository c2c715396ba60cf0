"""Strict mode on a real kube-scheduler: who is evicted for whom."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster, Terms
from tests.cluster.conftest import made, up
from tests.cluster.workloads import Deployment, Namespace, deployment

pytestmark = pytest.mark.thorough

MACHINE = "epyc-7763-nps2"
"""Four NUMA nodes of 64 CPUs."""


@pytest.fixture(scope="module")
def strict(kubernetes: Binaries, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    terms = Terms({"node-0": MACHINE}, scheduler="strict", extender_options=("--refuse",))
    with up(kubernetes, terms, request) as cluster:
        for name, value in (("low", 1), ("high", 1000)):
            priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            cluster.kubectl("apply", "-f", "-", text=json.dumps({**priority, "value": value}))
        yield cluster


@pytest.fixture
def full(strict: Cluster) -> Iterator[Namespace]:
    """Each NUMA node of the one node has a pod of low priority that leaves no room for another."""
    for namespace in made(strict):
        namespace.deploy(aligned("low", 4, cpu="60"))
        namespace.until_running(4)
        yield namespace


def aligned(priority: str, replicas: int, *, cpu: str) -> Deployment:
    annotations = {"group.numakin.io": priority, "policy.numakin.io": "single-numa-node"}
    return deployment(priority, replicas, cpu=cpu, annotations=annotations, priorityClassName=priority)


def running(namespace: Namespace, name: str) -> dict[str, str]:
    """The NUMA nodes of the pods that run, by uid."""
    node = namespace.cluster.nodes["node-0"]
    pods = [pod for pod in namespace.pods() if pod["metadata"]["labels"]["app"] == name]
    return {
        pod["metadata"]["uid"]: str(node.where(pod["metadata"]["uid"]))
        for pod in pods
        if pod["status"]["phase"] == "Running"
    }


def test_one_pod_of_low_priority_is_evicted_for_one_of_high(strict: Cluster, full: Namespace):
    before = running(full, "low")
    assert sorted(before.values()) == ["0", "1", "2", "3"]
    full.deploy(aligned("high", 1, cpu="60"))
    strict.until(lambda: len(running(full, "high")) == 1, "the pod of high priority to run")
    evicted = before.keys() - running(full, "low").keys()
    assert len(evicted) == 1
    assert [*running(full, "high").values()] == [before[uid] for uid in evicted]


def test_nobody_is_evicted_for_a_pod_that_no_numa_node_could_hold(strict: Cluster, full: Namespace):
    if not strict.plane.release.preempts_through_extenders:
        pytest.skip(
            "this kube-scheduler (1.20) never calls an extender's preempt verb; KUBERNETES_BIN of a newer one does"
        )
    before = running(full, "low")
    full.deploy(aligned("high", 1, cpu="70"))

    def refused() -> bool:
        events = json.loads(strict.kubectl("-n", full.name, "get", "events", "-o", "json"))["items"]
        return any(event["reason"] == "FailedScheduling" for event in events)

    strict.until(refused, "the pod to be refused")
    full.deploy(deployment("another", 1))
    strict.until(lambda: len(running(full, "another")) == 1, "a pod that came later to run")
    assert running(full, "low") == before
