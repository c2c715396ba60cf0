"""A pool of nodes of its own, labelled and tainted, on a real kube-scheduler: its groups are whole on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.workloads import Deployment, Namespace, deployment, homes, member

POOL = {"node-3", "node-7"}
ONLY_THERE = {
    "nodeSelector": {"pool": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "fast", "effect": "NoSchedule"}],
}


@pytest.fixture
def pool(namespace: Namespace) -> Iterator[Namespace]:
    kubectl = namespace.cluster.kubectl
    kubectl("label", "node", *POOL, "pool=fast")
    kubectl("taint", "node", *POOL, "dedicated=fast:NoSchedule")
    try:
        yield namespace
    finally:
        kubectl("taint", "node", *POOL, "dedicated-")
        kubectl("label", "node", *POOL, "pool-")


def of_pool(group: str) -> list[Deployment]:
    """58 of the 64 CPUs of a NUMA node, the small pods first."""
    terms = {"annotations": {"group.numakin.io": group}, **ONLY_THERE}
    return [deployment(f"{group}-small", 10, cpu="200m", **terms), deployment(f"{group}-large", 7, cpu="8", **terms)]


def test_groups_of_a_pool_that_come_at_once_are_whole_on_it_and_no_other_is_there(pool: Namespace):
    pool.deploy(*of_pool("orders"), *of_pool("quotes"), member("other", 10))
    pool.until_running(44)
    there = {group: homes(pool, group) for group in ("orders", "quotes", "other")}
    assert [[len(pods) for pods in found.values()] for found in there.values()] == [[17], [17], [10]]
    nodes = {group: {node for node, _ in found} for group, found in there.items()}
    assert nodes["orders"] | nodes["quotes"] <= POOL
    assert nodes["other"].isdisjoint(POOL)
