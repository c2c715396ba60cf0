"""Groups whose replicas may not share a host, on a real kube-scheduler: those that may be together are."""

from __future__ import annotations

from tests.cluster.workloads import Deployment, Namespace, deployment, homes

NAMES = [f"apart-{at}" for at in range(8)]


def by_host(group: str, name: str) -> Deployment:
    """Four replicas on four hosts."""
    selector = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}
    return deployment(name, 4, cpu="2", annotations={"group.numakin.io": group}, affinity=apart)


def test_each_pod_of_groups_that_are_apart_by_host_is_beside_one_that_it_may_be_beside(namespace: Namespace):
    """Of each group four web and four db."""
    apps = [(f"web-{group}", f"db-{group}") for group in NAMES]
    namespace.deploy(*(by_host(group, app) for group, pair in zip(NAMES, apps, strict=True) for app in pair))
    namespace.until_running(64)
    found = {group: [sorted(there) for there in homes(namespace, group).values()] for group in NAMES}
    assert found == {group: [sorted(pair)] * 4 for group, pair in zip(NAMES, apps, strict=True)}
