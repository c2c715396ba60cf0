"""Groups whose replicas may not share a host, on a real kube-scheduler: those that may be together are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.workloads import Deployment, Namespace, deployment, homes

NAMES = [f"apart-{at}" for at in range(8)]


def anti_affinity(rule: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}}


def spreading(rule: dict[str, Any]) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{**rule, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


def by_host(group: str, name: str, rules: Callable[[dict[str, Any]], dict[str, Any]]) -> Deployment:
    """Four replicas on four hosts."""
    rule = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    return deployment(name, 4, cpu="2", annotations={"group.numakin.io": group}, **rules(rule))


@pytest.mark.parametrize("rules", [anti_affinity, spreading])
def test_each_pod_of_groups_that_are_apart_by_host_is_beside_one_that_it_may_be_beside(namespace: Namespace, rules):
    """Of each group four web and four db."""
    apps = [(f"web-{group}", f"db-{group}") for group in NAMES]
    namespace.deploy(*(by_host(group, app, rules) for group, pair in zip(NAMES, apps, strict=True) for app in pair))
    namespace.until_running(64)
    found = {group: [sorted(there) for there in homes(namespace, group).values()] for group in NAMES}
    assert found == {group: [sorted(pair)] * 4 for group, pair in zip(NAMES, apps, strict=True)}
