"""Where a group of unknown size begins."""

from __future__ import annotations

import pytest

from extender.cluster import Cluster
from extender.state.pods import Changes
from tests.extender.machines import pod, want
from tests.extender.running import machine, reservation
from tests.extender.told import tell

NODES = ("many", "large")


@pytest.fixture
def nodes(cluster: Cluster) -> Cluster:
    """`many` is empty and has 8 CPUs on each of its NUMA nodes; `large` has 16 on each, 4 of them taken by one group."""
    tell(cluster, "many", of=machine(cpus=8))
    taken = (reservation(f"other{home}", f"{home}", group="default/others", milli=4000) for home in (0, 1))
    tell(cluster, "large", *taken, of=machine(cpus=16))
    return cluster


def leader(cluster: Cluster, **asked: str) -> str:
    return max(cluster.score(want("m0", **asked), NODES).rows, key=lambda row: row.score).node


def test_it_shares_what_is_free_with_the_groups_that_are_there(nodes: Cluster) -> None:
    """7 CPUs beside a pod of one, against half of 11."""
    assert leader(nodes, cpu="1") == "many"


def test_it_begins_where_more_is_free_though_less_of_the_node_is(nodes: Cluster) -> None:
    """2 CPUs beside a pod of six, against half of 6."""
    assert leader(nodes, cpu="6") == "large"


def test_of_a_known_size_it_begins_where_all_of_it_has_room(nodes: Cluster) -> None:
    assert leader(nodes, cpu="1", size="12") == "large"


def test_whose_members_run_already_it_does_not_begin(nodes: Cluster) -> None:
    tell(nodes, "large", reservation("m1", "0", milli=1000), of=machine(cpus=16))
    nodes.apply_pods(Changes(rows=(pod("m1", node="large"),), whole=True))
    assert leader(nodes, cpu="1") == "large"
