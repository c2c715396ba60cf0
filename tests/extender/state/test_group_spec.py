"""What an operator's AffinityGroup asks for is decided by, where pods do not say it themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.state.group_spec import GroupSpec
from extender.state.pods import Changes, PodRow
from extender.traffic.known import ClusterTraffic
from extender.traffic.memberships import Membership, Partition
from numakin.placement.decide.decide import Kin
from numakin.placement.optin.options import Defaults, Policy
from tests.extender.machines import pod
from tests.extender.running import reservation
from tests.extender.scoring.replicas import CART, REDIS, WEB, replica
from tests.extender.told import scores, tell

SHOP = "default/shop"
STRICT = GroupSpec(Defaults(Policy.RESTRICTED, 9))


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Two members of shop's web on a, one of its redis on b."""
    places = {"web-0": "a", "web-1": "a", "redis-0": "b"}
    rows = [replica(uid, uid.partition("-")[0], group="shop", node=node) for uid, node in places.items()]
    cluster.apply_pods(Changes(rows=tuple(rows), whole=True))
    for node in "ab":
        tell(cluster, node, *(reservation(uid, "1") for uid, at in places.items() if at == node))
    return cluster


def asked(cluster: Cluster, row: PodRow) -> tuple[Policy, int]:
    want = cluster.wanted(row)
    assert want is not None
    return want.opt_in.policy, want.opt_in.size


def kin(cluster: Cluster, row: PodRow) -> dict[str, Kin]:
    want = cluster.wanted(row)
    assert want is not None
    return {entry.node: entry.kin for entry in cluster.score(want, ["a", "b"]).rows}


def test_policy_and_size_go_for_members_that_do_not_say_them(cluster: Cluster):
    cluster.set_group_specs({SHOP: STRICT})
    assert asked(cluster, pod("p")) == (Policy.RESTRICTED, 9)
    assert asked(cluster, pod("p", policy="best-effort", size="3")) == (Policy.BEST_EFFORT, 3)
    assert asked(cluster, pod("p", group="other")) == (Policy.BEST_EFFORT, 0)


def test_without_the_object_it_is_as_the_annotations_say(cluster: Cluster):
    cluster.set_group_specs({SHOP: STRICT})
    cluster.set_group_specs({})
    assert asked(cluster, pod("p")) == (Policy.BEST_EFFORT, 0)


def test_a_group_that_was_found_from_traffic_is_asked_for_alike(cluster: Cluster):
    result = Partition({CART: Membership("default/auto-cart", 1.0)})
    cluster.learned(ClusterTraffic(declared={CART: ""}, found=result))
    cluster.set_group_specs({"default/auto-cart": STRICT})
    assert asked(cluster, replica("cart-1", "cart")) == (Policy.RESTRICTED, 9)
    assert asked(cluster, replica("mail-1", "mail")) == (Policy.BEST_EFFORT, 0)


def test_room_is_kept_for_the_size_that_the_object_tells(cluster: Cluster):
    cluster.set_group_specs({SHOP: STRICT})
    assert {peer.room_milli for peer in kin(cluster, replica("web-9", "web", group="shop")).values()} == {5 * 500}


def test_a_policy_of_the_object_can_refuse_a_node(cluster: Cluster):
    wide = replica("p", "web", group="shop")
    wide = replace(wide, containers=pod("p", cpu="9").containers)
    assert cluster.refusals(cluster.wanted(wide), ["a"]) == {}
    cluster.set_group_specs({SHOP: GroupSpec(Defaults(Policy.SINGLE_NUMA_NODE))})
    assert list(cluster.refusals(cluster.wanted(wide), ["a"])) == ["a"]


def test_a_pod_that_was_refused_everywhere_is_looked_at_again_when_the_object_asks_for_something_else(cluster: Cluster):
    wide = replace(replica("p", "web", group="shop"), containers=pod("p", cpu="9").containers)
    cluster.apply_pods(Changes(rows=(wide,)))
    strict = {SHOP: GroupSpec(Defaults(Policy.SINGLE_NUMA_NODE))}
    cluster.set_group_specs(strict)
    cluster.refusals(cluster.wanted(wide), ["a", "b"])
    assert cluster.set_group_specs({**strict, "default/other": STRICT}) == ()
    assert cluster.set_group_specs({}) == (wide,)
    assert cluster.set_group_specs(strict) == ()


class TestPriorities:
    """A newcomer is drawn by members of workloads with priority before it is by others."""

    FIRST = GroupSpec(priorities={REDIS: 5})

    def test_members_are_alike_without(self, cluster: Cluster):
        assert scores(cluster, cluster.wanted(replica("cart-9", "cart", group="shop")), "a", "b")["a"] == 10

    def test_every_member_is_named_with_its_weight(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: self.FIRST})
        row = replica("cart-9", "cart", group="shop")
        assert kin(cluster, row) == {"a": Kin({"web-0": 1.0, "web-1": 1.0}, 5.0), "b": Kin({"redis-0": 5.0}, 2.0)}
        result = scores(cluster, cluster.wanted(row), "a", "b")
        assert result["b"] == 10 > result["a"]

    def test_they_multiply_what_traffic_taught(self, cluster: Cluster):
        cluster.learned(ClusterTraffic(peers={CART: {REDIS: 2.0, WEB: 6.0}}, declared={CART: SHOP}))
        cluster.set_group_specs({SHOP: self.FIRST})
        assert kin(cluster, replica("cart-9", "cart", group="shop")) == {
            "a": Kin({"web-0": 3.0, "web-1": 3.0}, 10.0),
            "b": Kin({"redis-0": 10.0}, 6.0),
        }

    def test_who_has_none_draws_nobody(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: GroupSpec(priorities={WEB: 0})})
        assert scores(cluster, cluster.wanted(replica("cart-9", "cart", group="shop")), "a", "b")["b"] == 10
        cluster.set_group_specs({SHOP: GroupSpec(priorities={WEB: 0, REDIS: 0})})
        assert {peer.elsewhere for peer in kin(cluster, replica("cart-9", "cart", group="shop")).values()} == {0.0}

    def test_other_groups_know_nothing_of_them(self, cluster: Cluster):
        cluster.learned(ClusterTraffic(peers={CART: {REDIS: 2.0}}))
        cluster.set_group_specs({SHOP: self.FIRST})
        assert kin(cluster, replica("cart-9", "cart", group="mail"))["b"] == Kin({"redis-0": 2.0}, 0.0)

    def test_members_of_a_moment_ago_count(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: GroupSpec(priorities={CART: 9})})
        (nomination,) = cluster.apply_pods(
            Changes(rows=(replace(replica("cart-1", "cart", group="shop", node="b"), phase="Pending"),))
        )
        assert nomination.kin == Kin({"redis-0": 1.0}, 2.0)
        assert kin(cluster, replica("web-9", "web", group="shop"))["b"] == Kin({"redis-0": 1.0, "cart-1": 9.0}, 2.0)


class TestNominations:
    """What the object adds to a pod's annotations is told to its enforcer, which sees the annotations alone."""

    def nominated(self, cluster: Cluster, **keys: str):
        row = pod("p", node="a", **keys)
        return cluster.apply_pods(Changes(rows=(row,)))

    def test_only_what_the_pod_does_not_say(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: STRICT})
        (nomination,) = self.nominated(cluster, size="3")
        assert {name: (entry.policy, entry.size) for name, entry in nomination.opt_ins.items()} == {
            "main": (Policy.RESTRICTED, 3)
        }

    def test_nothing_where_the_object_says_nothing_else(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: STRICT})
        (nomination,) = self.nominated(cluster, policy="restricted", size="9")
        assert nomination.opt_ins == {}

    def test_that_its_cpus_are_left_open(self, cluster: Cluster):
        """There is no place to nominate then; the enforcer is told all the same."""
        cluster.set_group_specs({SHOP: GroupSpec(Defaults(Policy.NONE))})
        (nomination,) = self.nominated(cluster)
        assert not nomination.numa_nodes
        assert nomination.opt_ins["main"].policy is Policy.NONE

    def test_a_pod_that_leaves_them_open_itself_needs_no_nomination(self, cluster: Cluster):
        cluster.set_group_specs({SHOP: GroupSpec(Defaults(Policy.NONE))})
        assert self.nominated(cluster, policy="none") == ()
