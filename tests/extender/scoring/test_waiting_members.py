"""Pods of a group that wait for a node: the rest of the group is known without anybody having said its size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.traffic.known import ClusterTraffic
from extender.views.plan import plan
from tests.extender.machines import pod, want
from tests.extender.running import machine, reservation
from tests.extender.told import tell


def room(cluster: Cluster, uid: str = "m0", **keys: str) -> int:
    """What is thought to come after the pod, in millicores."""
    (row,) = cluster.score(want(uid, **keys), ["n"]).rows
    return row.kin.room_milli


def waiting(count: int, **asked: str) -> tuple[PodRow, ...]:
    return tuple(pod(f"m{number}", **asked) for number in range(count))


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    tell(cluster, "n")
    return cluster


def test_members_that_were_created_are_to_come(cluster: Cluster) -> None:
    cluster.apply_pods(
        Changes(rows=(*waiting(4), pod("other", group="another"), pod("stranger", group="")), whole=True)
    )
    assert room(cluster) == 3 * 500
    assert room(cluster, "last", group="another") == 500


@pytest.mark.parametrize(
    "after",
    [
        Changes(rows=(pod("m1", node="n"),)),
        Changes(rows=(replace(pod("m1"), phase="Failed"),)),
        Changes(rows=(replace(pod("m1"), leaving=True),)),
        Changes(gone=("m1",)),
        Changes(rows=(*waiting(1), pod("m2")), whole=True),
    ],
    ids=["bound", "ended", "being deleted", "deleted", "deleted while the watch was away"],
)
def test_a_member_that_waits_no_more_is_not(cluster: Cluster, after: Changes[PodRow]) -> None:
    cluster.apply_pods(Changes(rows=waiting(3), whole=True))
    cluster.apply_pods(after)
    assert room(cluster) == 500


def test_a_size_that_was_said_goes_first(cluster: Cluster) -> None:
    cluster.apply_pods(Changes(rows=waiting(3, size="10"), whole=True))
    assert room(cluster, size="10") == 9 * 500


def test_a_demand_that_can_not_be_read_counts_as_none(cluster: Cluster) -> None:
    cluster.apply_pods(Changes(rows=(*waiting(2), pod("bad", cpu="half a core")), whole=True))
    assert room(cluster) == 500


class TestWhereAGroupBegins:
    """`small` is empty, and has 4 CPUs on each NUMA node; each one of `large` has 12 of its 16 free, and three groups that
    may grow.
    """

    NODES = ("small", "large")

    @pytest.fixture
    def nodes(self, cluster: Cluster) -> Cluster:
        others = (
            reservation(f"other{home}-{of}", f"{home}", group=f"default/others-{of}", milli=4000 // 3)
            for home in (0, 1)
            for of in range(3)
        )
        tell(cluster, "small", of=machine(cpus=4))
        tell(cluster, "large", *others, of=machine(cpus=16))
        return cluster

    @pytest.mark.parametrize(("members", "node"), [(1, "small"), (8, "large")])
    def test_it_begins_where_those_who_wait_have_room(self, nodes: Cluster, members: int, node: str) -> None:
        nodes.apply_pods(Changes(rows=waiting(members, cpu="1"), whole=True))
        rows = nodes.score(want("m0", cpu="1"), self.NODES).rows
        assert max(rows, key=lambda row: row.score).node == node

    @pytest.mark.parametrize(("members", "node"), [(1, "small"), (8, "large")])
    def test_a_plan_takes_its_pods_to_be_created_together(self, nodes: Cluster, members: int, node: str) -> None:
        planned = plan(nodes, [(waiting(members, cpu="1"), self.NODES)])["pods"]
        assert [row["node"] for row in planned] == [node] * members

    def test_what_waits_in_the_cluster_waits_in_a_plan(self, nodes: Cluster) -> None:
        nodes.apply_pods(Changes(rows=waiting(8, cpu="1"), whole=True))
        (planned,) = plan(nodes, [([pod("new", cpu="1")], self.NODES)])["pods"]
        assert planned["node"] == "large"


def test_members_to_come_count_as_what_their_workload_uses(cluster: Cluster) -> None:
    rows = tuple(replace(row, owner=OwnerRow("StatefulSet", "web")) for row in waiting(4))
    cluster.apply_pods(Changes(rows=rows, whole=True))
    cluster.learned(ClusterTraffic(uses={"default/StatefulSet/web": 2000}))
    assert room(cluster) == 3 * 2000
    cluster.learned(ClusterTraffic(uses={"default/StatefulSet/web": 20}))
    assert room(cluster) == 3 * 500
