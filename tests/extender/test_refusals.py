"""What /filter refuses, and what evictions would change."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.scoring.strict import NO_OWN, NO_ROOM, NOT_ALIGNED, TOO_SMALL
from tests.clock import Clock
from tests.extender.machines import want
from tests.extender.running import reservation
from tests.extender.told import tell

FULL = [reservation(f"low{at}", str(at), milli=7000) for at in range(2)]


def refused(cluster: Cluster, asked) -> dict[str, tuple[str, bool]]:
    return {
        node: (refusal.why, refusal.hopeless) for node, refusal in cluster.refusals(asked, ["a", "unknown"]).items()
    }


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"policy": "single-numa-node", "cpu": "4"}, {}),
        ({"policy": "single-numa-node", "cpu": "12"}, {"a": (TOO_SMALL, True)}),
        ({"policy": "restricted", "cpu": "12"}, {}),
        ({"policy": "restricted", "cpu": "17"}, {"a": (TOO_SMALL, True)}),
    ],
)
def test_an_empty_node_is_refused_only_to_what_can_never_be_aligned_there(cluster: Cluster, keys, expected):
    tell(cluster, "a")
    assert refused(cluster, want("p", **keys)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"policy": "single-numa-node", "cpu": "1"}, {}),
        ({"policy": "single-numa-node", "cpu": "2"}, {"a": (NOT_ALIGNED, False)}),
        ({"policy": "restricted", "cpu": "2"}, {"a": (NOT_ALIGNED, False)}),
        ({"policy": "single-numa-node", "cpu": "3"}, {"a": (NO_ROOM, False)}),
    ],
)
def test_a_full_node_is_refused_with_a_reason_that_others_share(cluster: Cluster, keys, expected):
    tell(cluster, "a", *FULL)
    assert refused(cluster, want("p", **keys)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"cpu": "1"}, {}),
        ({"cpu": "500m"}, {}),
        ({"cpu": "2500m"}, {"a": (NO_OWN, False)}),
    ],
)
def test_a_node_that_can_not_spare_the_rounded_up_cpus_is_refused_to_a_strict_pod(cluster: Cluster, keys, expected):
    """6.5 of 8 CPUs of each NUMA node are asked for: kube-scheduler would admit 2500m, and numakin gives whole CPUs."""
    tell(cluster, "a", *(reservation(f"low{at}", str(at), milli=6500) for at in range(2)))
    assert refused(cluster, want("p", **{"policy": "restricted", "cpus": "exclusive", **keys})) == expected


def test_a_node_is_never_refused_on_stale_data(cluster: Cluster, clock: Clock):
    tell(cluster, "a", *FULL)
    asked = want("p", policy="single-numa-node", cpu="3")
    assert refused(cluster, asked)
    clock.now += 20
    assert refused(cluster, asked) == {}


def test_evictions_count_only_where_they_free_a_numa_node(cluster: Cluster):
    halves = [reservation(f"half{at}", str(at % 2), milli=3500) for at in range(4)]
    tell(cluster, "a", *halves)
    asked = want("p", policy="single-numa-node", cpu="6")
    assert cluster.victims(asked, {"a": ["half0", "half1"]}) == {}
    assert cluster.victims(asked, {"a": ["half0", "half2"]}) == {"a": ("half0", "half2")}
    assert cluster.victims(asked, {"unknown": ["x"]}) == {"unknown": ("x",)}
