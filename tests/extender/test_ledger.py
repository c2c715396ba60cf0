"""What was assumed and what was seen bound, and what is counted of the difference."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest

from extender.cluster import Cluster
from extender.ledger import BINDING_S, PODS_AT_ONCE
from extender.state.pods import Changes
from numakin.placement.model.cpuset import NumaSet
from numakin.wire import bounds
from tests.clock import Clock
from tests.extender.machines import pod, want
from tests.extender.running import reservation
from tests.extender.told import reservations_of, tell

NODES = ["a", "b", "c"]


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    for node in NODES:
        tell(cluster, node)
    return cluster


def scored(cluster: Cluster, uid: str, *nodes: str, **keys: str) -> str:
    """The node that leads."""
    rows = cluster.score(want(uid, **keys), nodes or NODES).rows
    best = max(rows, key=lambda row: row.score)
    assert all(row is best or row.score <= best.score - 2 for row in rows), "kube-scheduler would draw lots"
    return best.node


def bound(cluster: Cluster, uid: str, node: str, **keys: str) -> None:
    cluster.apply_pods(Changes(rows=(pod(uid, **keys),)))
    cluster.apply_pods(Changes(rows=(replace(pod(uid, **keys), node=node),)))


def counted(cluster: Cluster) -> tuple[dict[str, int], int]:
    picture = cluster.picture()
    return {outcome: count for outcome, count in picture.bindings.items() if count}, picture.splits


def test_a_first_member_is_led_to_one_node_and_the_next_follows_before_any_binding_is_seen(cluster: Cluster):
    first = scored(cluster, "p0")
    assert [scored(cluster, f"p{at}") for at in range(1, 10)] == [first] * 9


def test_groups_that_begin_one_after_the_other_spread_over_the_nodes(cluster: Cluster):
    assert {scored(cluster, f"p-{group}", group=group) for group in ("x", "y", "z")} == set(NODES)


def test_a_binding_where_it_was_assumed_is_counted_as_that(cluster: Cluster):
    bound(cluster, "p", scored(cluster, "p"))
    assert counted(cluster) == ({"as assumed": 1}, 0)


def test_its_node_is_told_whether_the_place_is_one_that_scores_were_given_for(cluster: Cluster):
    node = scored(cluster, "p")
    for uid in ("p", "q"):
        cluster.apply_pods(Changes(rows=(pod(uid),)))
    nominations = cluster.apply_pods(Changes(rows=tuple(replace(pod(uid), node=node) for uid in ("p", "q"))))
    assert [(each.pod.uid, each.scored, bool(each.numa_nodes)) for each in nominations] == [
        ("p", True, True), ("q", False, True),
    ]  # fmt: skip


def test_a_pod_that_went_elsewhere_is_counted_and_the_next_member_follows_it(cluster: Cluster):
    assumed = scored(cluster, "p")
    elsewhere = next(node for node in NODES if node != assumed)
    bound(cluster, "p", elsewhere)
    assert counted(cluster) == ({"elsewhere": 1}, 0)
    assert reservations_of(cluster, assumed) == {}
    assert scored(cluster, "q") == elsewhere


def test_a_binding_after_the_assumption_ran_out_is_counted_as_not_assumed(cluster: Cluster, clock: Clock):
    node = scored(cluster, "p")
    clock.now += 31
    bound(cluster, "p", node)
    assert counted(cluster) == ({"not assumed": 1}, 0)


class TestNominated:
    """From 1.35 on kube-scheduler nominates the node that it has chosen where it waits before it binds the pod, as for
    its volumes.
    """

    @pytest.fixture
    def node(self, cluster: Cluster) -> str:
        """Which it nominates."""
        cluster.apply_pods(Changes(rows=(pod("p"),)))
        node = scored(cluster, "p")
        cluster.apply_pods(Changes(rows=(replace(pod("p"), nominated=node),)))
        return node

    def holds(self, cluster: Cluster, node: str) -> bool:
        cluster.figures()
        return "p" in reservations_of(cluster, node)

    def test_the_room_is_held_until_it_is_bound(self, cluster: Cluster, clock: Clock, node: str):
        clock.now += 600
        assert self.holds(cluster, node)
        cluster.apply_pods(Changes(rows=(replace(pod("p"), node=node),)))
        assert counted(cluster) == ({"as assumed": 1}, 0)

    @pytest.mark.parametrize(
        "ends",
        [{"nominated": "", "unscheduled": 1}, {"unscheduled": 1}, {"leaving": True, "phase": "Failed"}],
        ids=["given up", "given up and nominated still", "ended"],
    )
    def test_or_until_kube_scheduler_gives_it_up(self, cluster: Cluster, node: str, ends: dict):
        cluster.apply_pods(Changes(rows=(replace(pod("p"), **{"nominated": node, **ends}),)))
        assert not self.holds(cluster, node)

    def test_a_while_after_it_is_nominated_no_more(self, cluster: Cluster, clock: Clock, node: str):
        cluster.apply_pods(Changes(rows=(pod("p"),)))
        clock.now += 31
        assert not self.holds(cluster, node)

    def test_and_not_for_ever_where_kube_scheduler_is_no_more(self, cluster: Cluster, clock: Clock, node: str):
        clock.now += BINDING_S
        assert not self.holds(cluster, node)

    def test_nor_where_another_node_is_nominated(self, cluster: Cluster, clock: Clock, node: str):
        cluster.apply_pods(
            Changes(rows=(replace(pod("p"), nominated=next(other for other in NODES if other != node)),))
        )
        clock.now += 31
        assert not self.holds(cluster, node)


def test_a_binding_of_a_pod_that_was_scored_elsewhere_is_not_counted(cluster: Cluster):
    """As by another replica of the extender, or before this one's time."""
    bound(cluster, "p", "a")
    assert counted(cluster) == ({}, 0)


class TestSplits:
    def test_a_member_away_from_its_group_counts_where_an_offered_node_had_room_beside_it(self, cluster: Cluster):
        bound(cluster, "p", scored(cluster, "p"))
        home = next(node for node in NODES if reservations_of(cluster, node))
        away = next(node for node in NODES if node != home)
        scored(cluster, "q")
        bound(cluster, "q", away)
        assert counted(cluster) == ({"as assumed": 1, "elsewhere": 1}, 1)

    def test_one_that_followed_a_wrong_assumption_counts_once_the_truth_is_seen(self, cluster: Cluster):
        assumed = scored(cluster, "p")
        assert scored(cluster, "q") == assumed
        bound(cluster, "p", next(node for node in NODES if node != assumed))
        bound(cluster, "q", assumed)
        assert counted(cluster) == ({"as assumed": 1, "elsewhere": 1}, 1)

    def test_a_full_node_splits_nothing(self, cluster: Cluster):
        tell(cluster, "a", *(reservation(f"kin{numa}", numa, milli=7800) for numa in "01"), generation=2)
        bound(cluster, "p", scored(cluster, "p", cpu="2"), cpu="2")
        assert counted(cluster)[1] == 0

    def test_nor_does_a_node_that_was_not_offered(self, cluster: Cluster):
        tell(cluster, "a", reservation("kin", "0"), generation=2)
        bound(cluster, "p", scored(cluster, "p", "b", "c"))
        assert counted(cluster)[1] == 0

    def test_nor_does_a_member_that_was_scored_later_and_is_seen_bound_first(self, cluster: Cluster, clock: Clock):
        """As where kube-scheduler samples nodes, and the later one's sample has not the first one's node."""
        first = scored(cluster, "p", "a", "b")
        other = "b" if first == "a" else "a"
        clock.now += 0.01
        assert scored(cluster, "q", other, "c") == other
        bound(cluster, "q", other)
        bound(cluster, "p", first)
        assert counted(cluster) == ({"as assumed": 2}, 0)

    def test_nor_does_one_that_follows_a_member_whose_binding_is_not_seen_yet(self, cluster: Cluster, clock: Clock):
        """By sampling the group is on two nodes; of the one with more members the last one's binding is seen first."""
        first = scored(cluster, "p", "a", "b")
        assert scored(cluster, "p2", "a", "b") == first
        bound(cluster, "q", scored(cluster, "q", *(node for node in NODES if node != first)))
        clock.now += 0.01
        assert scored(cluster, "r") == first
        bound(cluster, "r", first)
        assert counted(cluster) == ({"as assumed": 2}, 0)

    def test_one_that_went_elsewhere_counts_by_those_who_followed_its_assumption_too(
        self, cluster: Cluster, clock: Clock
    ):
        assumed = scored(cluster, "p")
        clock.now += 0.01
        bound(cluster, "q", scored(cluster, "q"))
        bound(cluster, "p", next(node for node in NODES if node != assumed))
        assert counted(cluster) == ({"as assumed": 1, "elsewhere": 1}, 1)

    def test_the_group_is_one_of_a_whole_namespace_and_name(self, cluster: Cluster):
        tell(cluster, "a", reservation("kin", "0", group="other/shop"), generation=2)
        bound(cluster, "p", scored(cluster, "p", "b", "c"))
        assert counted(cluster)[1] == 0


STRICT = {"policy": "single-numa-node", "cpu": "6"}


class TestEnded:
    """The API server does not have a pod any more, and its node's enforcer still shows it."""

    @pytest.fixture(autouse=True)
    def full(self, cluster: Cluster) -> None:
        tell(cluster, "a", *(reservation(f"low{numa}", numa, milli=7000) for numa in "01"), generation=2)
        cluster.apply_pods(Changes(rows=tuple(pod(f"low{numa}", node="a") for numa in "01"), whole=True))
        assert cluster.refusals(want("p", **STRICT), ["a"])

    def test_its_room_is_free_at_once(self, cluster: Cluster):
        cluster.apply_pods(Changes(gone=("low1",)))
        assert cluster.refusals(want("p", **STRICT), ["a"]) == {}
        cluster.score(want("p", **STRICT), ["a"])
        (nomination,) = cluster.apply_pods(Changes(rows=(pod("p", node="a", **STRICT),)))
        assert nomination.numa_nodes == NumaSet.parse("1")

    def test_also_where_a_later_report_still_shows_it(self, cluster: Cluster):
        cluster.apply_pods(Changes(gone=("low1",)))
        tell(cluster, "a", *(reservation(f"low{numa}", numa, milli=7000) for numa in "01"), generation=3)
        assert cluster.refusals(want("p", **STRICT), ["a"]) == {}

    def test_once_its_enforcer_shows_it_no_more_all_is_as_reported(self, cluster: Cluster):
        cluster.apply_pods(Changes(gone=("low1",)))
        tell(cluster, "a", reservation("low0", "0", milli=7000), generation=3)
        view = cluster.view("a")
        assert view.ended == frozenset()
        assert view.occupancy is view.reported


def test_a_nomination_counts_the_replicas_of_so_many_workloads_and_its_own_first(cluster: Cluster):
    members = [
        replace(reservation(f"m{number}", "0", milli=1), workload=f"default/Deployment/w{number:03}")
        for number in range(bounds.REPLICA_COUNTS + 5)
    ]
    stranger = replace(reservation("s", "0", milli=1), workload="other/Deployment/w")
    tell(cluster, "a", *members, stranger, generation=2)
    (nomination,) = cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    counted = [count.workload for count in nomination.replicas]
    assert counted[0] == "default/Pod/p"
    assert counted[1:] == [f"default/Deployment/w{number:03}" for number in range(bounds.REPLICA_COUNTS - 1)]


def test_a_list_of_a_large_clusters_pods_holds_up_no_answer_until_all_of_it_is_taken_in(cluster: Cluster):
    rows = tuple(replace(pod(f"p{at}"), node="a", phase="Running") for at in range(100 * PODS_AT_ONCE))
    listing = Thread(target=cluster.apply_pods, args=(Changes(rows=rows, whole=True),))
    listing.start()
    known = set()
    while listing.is_alive():
        known.add(len(cluster.picture().names))
    listing.join()
    assert known - {0, len(rows)}, "somebody was answered meanwhile"
    assert len(cluster.picture().names) == len(rows)


def test_the_first_list_is_believed_once_all_of_it_is_taken_in(cluster: Cluster):
    """Until then a pod that is further back in it counts as one that there is."""
    rows = (*(pod(f"p{at}") for at in range(PODS_AT_ONCE)), pod("late"))
    steps = cluster._ledger.apply(Changes(rows=rows, whole=True))
    next(steps)
    assert cluster._ledger.knows(pod("late"))
    assert len(list(steps)) == 1
    assert [cluster._ledger.knows(pod(uid)) for uid in ("late", "invented")] == [True, False]
