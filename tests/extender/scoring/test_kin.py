"""Kin on each node: by what was learned of the pod, else of its workload, else every member of the group alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring.predict import wanted
from extender.state.pods import Changes
from extender.traffic.known import ClusterTraffic
from extender.traffic.memberships import Membership, Partition
from numakin.placement.decide.decide import Kin
from tests.extender.running import reservation
from tests.extender.scoring.replicas import CART, REDIS, WEB, replica
from tests.extender.told import scores, tell


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """redis-0 and redis-1 on a, redis-2 on b, web-0 on c."""
    places = {"redis-0": "a", "redis-1": "a", "redis-2": "b", "web-0": "c"}
    rows = tuple(replica(uid, uid.partition("-")[0], node=node) for uid, node in places.items())
    cluster.apply_pods(Changes(rows=rows, whole=True))
    for node in "abc":
        tell(cluster, node, *(reservation(uid, "1", group="") for uid, at in places.items() if at == node))
    return cluster


def kin(
    cluster: Cluster, uid: str = "cart-9", workload: str = "cart", group: str = "auto", **keys: str
) -> dict[str, Kin]:
    row = replica(uid, workload, group=group)
    want = wanted(
        replace(row, annotations=row.annotations | {f"{key}.numakin.io": entry for key, entry in keys.items()})
    )
    assert want is not None
    return {row.node: row.kin for row in cluster.score(want, ["a", "b", "c"]).rows}


def test_a_new_replica_has_its_workloads_kin(cluster: Cluster):
    """Each replica of a peer alike, and what is on other nodes as elsewhere."""
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 6.0, WEB: 1.0}}))
    assert kin(cluster) == {
        "a": Kin({"redis-0": 2.0, "redis-1": 2.0}, 3.0),
        "b": Kin({"redis-2": 2.0}, 5.0),
        "c": Kin({"web-0": 1.0}, 6.0),
    }


def test_what_was_learned_of_the_very_pod_goes_first(cluster: Cluster):
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 6.0}}, partners={"cart-9": {"redis-2": 5.0, "gone": 7.0}}))
    assert kin(cluster) == {"a": Kin({}, 5.0), "b": Kin({"redis-2": 5.0}, 0.0), "c": Kin({}, 5.0)}


def test_it_is_no_kin_of_its_own(cluster: Cluster):
    cluster.learned(ClusterTraffic(peers={REDIS: {REDIS: 6.0}}))
    assert kin(cluster, "redis-2", "redis")["b"] == Kin({}, 6.0)


def test_the_heavier_kin_draws_the_pod(cluster: Cluster):
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 1.0, WEB: 9.0}}))
    want = wanted(replica("cart-9", "cart"))
    result = scores(cluster, want, "a", "b", "c")
    assert max(result, key=result.__getitem__) == "c"
    assert result["c"] == 10


def test_members_of_a_found_group_are_alike_where_no_peer_is_known_to_run(cluster: Cluster):
    result = Partition({CART: Membership("default/auto-cart", 1.0), REDIS: Membership("default/auto-cart", 1.0)})
    cluster.learned(
        ClusterTraffic(peers={CART: {"default/Deployment/mail": 6.0}}, declared={CART: "", REDIS: ""}, found=result)
    )
    assert kin(cluster)["a"] == Kin({"redis-0": 1.0, "redis-1": 1.0}, 1.0)


def test_what_nothing_is_known_of_has_no_kin(cluster: Cluster):
    assert set(kin(cluster).values()) == {Kin()}


def test_without_knowledge_a_named_groups_members_are_alike(cluster: Cluster):
    tell(cluster, "b", reservation("member", "0", group="default/shop"), generation=2)
    result = kin(cluster, "new", "new", group="shop")
    assert result == {"a": Kin(elsewhere=1.0), "b": Kin(elsewhere=0.0), "c": Kin(elsewhere=1.0)}


def test_the_rest_of_a_found_group_is_counted(cluster: Cluster):
    """Four run, this is the fifth: five of ten are still to come, each as large as this one."""
    result = Partition({name: Membership("default/auto-cart", 1.0) for name in (CART, REDIS, WEB)})
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 6.0}}, declared={CART: "", REDIS: "", WEB: ""}, found=result))
    assert {peer.room_milli for peer in kin(cluster, size="10").values()} == {5 * 500}


def test_kin_that_were_placed_a_moment_ago_count(cluster: Cluster):
    """A burst must not wait for reports: assumed pods are where they are expected."""
    cluster.learned(ClusterTraffic(peers={CART: {WEB: 1.0}, WEB: {CART: 1.0}}))
    cluster.apply_pods(Changes(rows=(replica("cart-1", "cart"),)))
    first = {row.node: row for row in cluster.score(wanted(replica("cart-1", "cart")), ["a", "b", "c"]).rows}
    assert first["c"].score == 10
    second = cluster.score(wanted(replica("web-1", "web")), ["a", "b", "c"])
    assert {row.node: row.kin.weights for row in second.rows}["c"] == {"cart-1": 1.0}


def test_pods_and_nodes_that_go_are_nobodys_kin(cluster: Cluster):
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 6.0}}))
    tell(cluster, "a", reservation("redis-0", "1", group=""), generation=2)
    cluster.apply_pods(Changes(gone=("redis-1",)))
    assert kin(cluster)["a"] == Kin({"redis-0": 3.0}, 3.0)
    cluster.apply_nodes(Changes(gone=("b",)))
    assert kin(cluster)["a"] == Kin({"redis-0": 6.0}, 0.0)


def test_a_nomination_tells_the_learned_kin(cluster: Cluster):
    cluster.learned(ClusterTraffic(peers={CART: {REDIS: 6.0}}))
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(replica("cart-9", "cart", node="a"), phase="Pending"),)))
    assert nomination.kin == Kin({"redis-0": 2.0, "redis-1": 2.0}, 2.0)
    assert str(nomination.numa_nodes) == "1"
