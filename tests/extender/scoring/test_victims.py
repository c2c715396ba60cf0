"""Whom to evict so that a NUMA node is free: kube-scheduler counts a node's CPUs as one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring import victims
from extender.state.pods import Changes, OwnerRow
from numakin.placement.model.demand import Demand
from tests.extender.machines import pod, want
from tests.extender.running import reservation
from tests.extender.told import tell

ASKED = {"policy": "single-numa-node", "cpu": "6"}
"""More than half of a NUMA node's 8 CPUs."""


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Both NUMA nodes are full, one pod of 4 CPUs after the other in turn."""
    tell(cluster, "a", *(reservation(f"low{at}", str(at % 2), milli=4000) for at in range(4)))
    listed(cluster)
    return cluster


def listed(cluster: Cluster, **changes) -> None:
    """changes: of a pod's row, by its name."""
    rows = [replace(pod(f"low{at}", node="a", cpu="4"), phase="Running", priority=1) for at in range(4)]
    cluster.apply_pods(Changes(tuple(replace(row, **changes.get(row.uid, {})) for row in rows), whole=True))


def chosen(cluster: Cluster, *named: str, priority: int = 10):
    asked = want("p", **ASKED)
    return cluster.victims(replace(asked, pod=replace(asked.pod, priority=priority)), {"a": named}).get("a")


def test_the_named_ones_stay_where_they_free_a_numa_node(cluster: Cluster):
    assert chosen(cluster, "low1", "low3") == ("low1", "low3")


def test_else_others_are_chosen_that_do(cluster: Cluster):
    assert set(chosen(cluster, "low0", "low1")) in ({"low0", "low2"}, {"low1", "low3"})


def test_no_more_than_it_takes(cluster: Cluster):
    assert set(chosen(cluster, "low0")) == {"low0", "low2"}


def test_the_less_important_go(cluster: Cluster):
    listed(cluster, low0={"priority": 5})
    assert set(chosen(cluster, "low0", "low1")) == {"low1", "low3"}


def test_they_free_as_much_as_kube_scheduler_needs(cluster: Cluster):
    """Its own filters count the node's CPUs as one, and want three pods' room."""
    assert len(chosen(cluster, "low0", "low1", "low3", priority=10)) == 3
    listed(cluster, low3={"priority": 20})
    assert set(chosen(cluster, "low1", "low0")) == {"low0", "low2"}


def test_what_a_pod_takes_beside_its_containers_is_freed_with_it(cluster: Cluster):
    """kube-scheduler counts it, so that the two without it free too little."""
    listed(cluster, low1={"overhead": Demand(500)})
    assert set(chosen(cluster, "low0", "low1")) == {"low1", "low3"}


@pytest.mark.parametrize(
    "stays",
    [
        {"priority": 10},
        {"owner": OwnerRow("Node", "a")},
        {"owner": OwnerRow("DaemonSet", "agent")},
    ],
    ids=["as important", "static", "of a DaemonSet"],
)
def test_pods_that_would_not_make_room_are_left_alone(cluster: Cluster, stays):
    listed(cluster, low2=stays, low3=stays)
    assert chosen(cluster, "low0", "low1") is None


def test_a_bounded_number_of_decisions_is_made(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(victims.DecisionBudget, "take", lambda _self: False)
    assert chosen(cluster, "low0", "low1") is None
