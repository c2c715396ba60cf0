"""What is said of a pod that nothing is known of."""

from __future__ import annotations

from dataclasses import replace

from extender.cluster import Cluster
from extender.views.explain import unknown
from tests.extender.machines import want
from tests.extender.told import tell


def scored(cluster: Cluster, namespace: str, name: str) -> None:
    asked = want(name)
    cluster.score(replace(asked, pod=replace(asked.pod, namespace=namespace, name=name)), ["a"])


def test_only_pods_of_its_own_namespace_are_named(cluster: Cluster) -> None:
    tell(cluster, "a")
    scored(cluster, "shop", "cart-1")
    scored(cluster, "bank", "cart-2")
    assert unknown(cluster, "shop", "cart").endswith("; known are cart-1")
    assert unknown(cluster, "elsewhere", "cart").endswith(
        "; no pod of namespace elsewhere is known that has the annotation group.numakin.io itself"
    )
