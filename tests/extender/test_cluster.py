"""The cluster over time: what is assumed, what is nominated, and how reports settle it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.scoring.predict import wanted
from extender.state.node_report import DecisionRow, Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, ContainerRow, NodeRow
from extender.views.explain import explain
from extender.views.readout import groups
from numakin.placement.decide.decide import Reason
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.state.occupancy import Allocation, fingerprint
from tests.clock import Clock
from tests.extender.machines import GIB, pod, want
from tests.extender.running import machine, reservation
from tests.extender.told import reservations_of, scores, tell

SECOND = ContainerRow("second", {"cpu": "2"})


def test_a_scored_pod_holds_its_room_on_the_best_node(cluster: Cluster):
    tell(cluster, "a", reservation("kin", "1"))
    tell(cluster, "b")
    scores(cluster, want("p"), "a", "b")
    assert reservations_of(cluster, "a") == {"kin": "1", "p": "1"}
    assert reservations_of(cluster, "b") == {}


def test_scoring_a_pod_again_counts_it_once(cluster: Cluster):
    tell(cluster, "a")
    first = scores(cluster, want("p", cpu="6"), "a")
    assert scores(cluster, want("p", cpu="6"), "a") == first
    assert len(reservations_of(cluster, "a")) == 1


def test_a_burst_of_members_fills_numa_nodes_and_never_overcommits(cluster: Cluster):
    """40 members of 1 CPU, 2 nodes of 2 x 8 CPUs, and no report in between."""
    for node in ("a", "b"):
        tell(cluster, node)
    placed = []
    for at in range(32):
        result = scores(cluster, want(f"p{at}", cpu="1"), "a", "b")
        placed.append(max(result, key=result.__getitem__))
    for node in ("a", "b"):
        view = cluster.view(node)
        assert all(load <= 8000 for load in view.occupancy.cpu_load(view.machine).values())
    assert placed[:16] == [placed[0]] * 16, "the group stays together while its node has room"
    assert len(set(placed[16:])) == 1


def test_an_assumption_that_nobody_confirms_expires(cluster: Cluster, clock: Clock):
    tell(cluster, "a")
    scores(cluster, want("p"), "a")
    clock.now += 31
    cluster.received("a")
    assert [node_state.view.assumed for node_state in cluster.picture().nodes] == [{}]
    assert cluster.picture().expired == 1


def test_a_bound_pod_holds_its_room_while_its_images_come_and_a_while_after_it_runs(cluster: Cluster, clock: Clock):
    tell(cluster, "a")
    tell(cluster, "b")
    starting = pod("p", node="a")
    cluster.apply_pods(Changes(rows=(starting,), whole=True))
    for _ in range(20):
        clock.now += 31
        cluster.received("a")
        assert list(reservations_of(cluster, "a")) == ["p"]
        assert cluster.figures().expired == 0
    cluster.apply_pods(Changes(rows=(replace(starting, phase="Running"),)))
    clock.now += 31
    assert cluster.figures().expired == 1, "its node does not show it"
    assert reservations_of(cluster, "a") == {}


def test_the_report_settles_what_was_assumed(cluster: Cluster):
    tell(cluster, "a")
    scores(cluster, want("p"), "a")
    tell(cluster, "a", reservation("p", "1"), generation=2)
    assert reservations_of(cluster, "a") == {"p": "1"}
    assert cluster.picture().assumed == ()


def test_a_bound_pod_is_nominated_the_place_it_was_scored_for(cluster: Cluster):
    tell(cluster, "a", reservation("kin", "1"), generation=7)
    tell(cluster, "b")
    asked = pod("p")
    scores(cluster, want("p"), "a", "b")
    cluster.apply_pods(Changes(rows=(asked,)))
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(asked, node="a"),)))
    assert (nomination.node, nomination.numa_nodes, nomination.generation) == ("a", NumaSet.parse("1"), 7)
    assert [entry.bound for entry in cluster.picture().assumed] == [True]


def test_a_pod_bound_elsewhere_takes_its_room_along(cluster: Cluster):
    tell(cluster, "a", reservation("kin", "1"))
    tell(cluster, "b")
    scores(cluster, want("p"), "a", "b")
    (nomination,) = cluster.apply_pods(Changes(rows=(pod("p", node="b"),)))
    assert nomination.node == "b"
    assert nomination.kin.elsewhere == 1.0
    assert reservations_of(cluster, "a") == {"kin": "1"}
    assert reservations_of(cluster, "b") == {"p": str(nomination.numa_nodes)}


def test_a_binding_is_nominated_once(cluster: Cluster):
    tell(cluster, "a")
    bound = pod("p", node="a")
    assert len(cluster.apply_pods(Changes(rows=(bound,)))) == 1
    assert cluster.apply_pods(Changes(rows=(bound,))) == ()
    assert cluster.apply_pods(Changes(rows=(replace(bound, phase="Running"),))) == ()


@pytest.mark.parametrize(
    "row",
    [
        pod("p", node="a", group=""),
        replace(pod("p", node="a"), phase="Running"),
        pod("p", node="a", cpu="junk"),
        pod("p"),
    ],
    ids=["not opted in", "running already", "unreadable", "not bound"],
)
def test_no_nomination_where_there_is_nothing_to_nomination(cluster: Cluster, row):
    tell(cluster, "a")
    assert cluster.apply_pods(Changes(rows=(row,))) == ()


def test_a_pod_bound_to_an_unknown_node_is_nominated_when_its_enforcer_comes(cluster: Cluster):
    (facts,) = cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    assert facts.numa_nodes == NumaSet()
    tell(cluster, "a", reservation("kin", "1"))
    (nomination,) = cluster.pending("a")
    assert nomination.numa_nodes == NumaSet.parse("1")


def test_an_enforcer_that_comes_is_told_of_the_pods_that_are_still_to_start_there_and_of_no_other(cluster: Cluster):
    tell(cluster, "a")
    starting = [pod(uid, node="a") for uid in ("first", "runs", "ended", "gone", "last")]
    cluster.apply_pods(Changes(rows=(*starting, pod("elsewhere", node="b"), pod("unbound"))))
    later = (
        replace(starting[1], phase="Running"),
        replace(starting[2], phase="Failed"),
        replace(starting[0], ip="10.0.0.1"),
    )
    cluster.apply_pods(Changes(rows=later, gone=("gone",)))
    assert [nomination.pod.uid for nomination in cluster.pending("a")] == ["first", "last"]
    cluster.apply_pods(Changes(rows=(replace(starting[0], phase="Running"),), whole=True))
    assert cluster.pending("a") == ()
    assert cluster._ledger._starting == {}


def test_a_pod_that_fits_nowhere_gets_facts_without_a_place(cluster: Cluster):
    tell(cluster, "a")
    (nomination,) = cluster.apply_pods(Changes(rows=(pod("p", node="a", cpu="40"),)))
    assert nomination.numa_nodes == NumaSet()
    assert nomination.pod.demand.cpu_milli == 40_000


def test_a_member_that_its_node_showed_before_the_api_server_did_gets_its_facts(cluster: Cluster):
    tell(cluster, "a", reservation("p", "0", milli=8_000))
    (facts,) = cluster.apply_pods(Changes(rows=(pod("p", node="a", cpu="1"),)))
    assert (facts.pod.demand.cpu_milli, facts.numa_nodes) == (1_000, NumaSet())
    assert reservations_of(cluster, "a") == {"p": "0"}


def test_a_member_that_its_node_showed_before_its_binding_was_seen_gets_its_facts(cluster: Cluster):
    cluster.apply_pods(Changes(rows=(pod("p", cpu="1"),)))
    tell(cluster, "a", reservation("p", "0", milli=8_000))
    assert len(cluster.apply_pods(Changes(rows=(pod("p", node="a", cpu="1"),)))) == 1


@pytest.mark.parametrize(
    "change",
    [
        Changes(gone=("p",)),
        Changes(rows=(replace(pod("p", node="a"), phase="Failed"),)),
        Changes(whole=True),
    ],
    ids=["deleted", "failed", "missing in a list"],
)
def test_a_pod_that_goes_gives_its_room_back(cluster: Cluster, change):
    tell(cluster, "a")
    cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    assert reservations_of(cluster, "a")
    cluster.apply_pods(change)
    assert reservations_of(cluster, "a") == {}


def test_a_static_pod_whose_mirror_is_deleted_and_made_anew_keeps_its_room(cluster: Cluster):
    """Its containers run all the while, and the node shows it under the same uid."""
    mirror = replace(pod("hash", node="a"), phase="Running")
    cluster.apply_pods(Changes(rows=(mirror,), whole=True))
    tell(cluster, "a", reservation("hash", "0"))
    cluster.apply_pods(Changes(gone=("hash",)))
    assert reservations_of(cluster, "a") == {}
    cluster.apply_pods(Changes(rows=(mirror,)))
    assert reservations_of(cluster, "a") == {"hash": "0"}
    tell(cluster, "a", reservation("hash", "0"), reservation("q", "0"), generation=2)
    assert reservations_of(cluster, "a") == {"hash": "0", "q": "0"}


def test_a_node_that_leaves_the_cluster_is_forgotten(cluster: Cluster):
    tell(cluster, "a", reservation("kin", "1"))
    scores(cluster, want("p"), "a")
    cluster.apply_nodes(Changes(gone=("a",)))
    assert cluster.view("a") is None
    assert cluster.picture().assumed == ()


def test_what_its_enforcer_reports_does_not_bring_a_node_back_that_has_left(cluster: Cluster):
    """Its pods end after its Node object, and what is stored of it would never be forgotten."""
    tell(cluster, "a", reservation("kin", "1"))
    cluster.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b")), whole=True))
    cluster.apply_nodes(Changes(gone=("a",)))
    tell(cluster, "a", generation=2)
    assert cluster.view("a") is None
    cluster.apply_nodes(Changes(rows=(NodeRow("a"),)))
    tell(cluster, "a", reservation("kin", "1"), generation=3)
    assert reservations_of(cluster, "a") == {"kin": "1"}


def test_a_node_that_a_new_list_does_not_have_any_more_is_forgotten(cluster: Cluster):
    """It was deleted while the watch was away. One that was never listed may be on its way."""
    for name in ("a", "b", "unlisted"):
        tell(cluster, name)
    cluster.apply_nodes(Changes(rows=(NodeRow("a"), NodeRow("b")), whole=True))
    cluster.apply_nodes(Changes(rows=(NodeRow("b"),), whole=True))
    assert [name for name in ("a", "b", "unlisted") if cluster.view(name)] == ["b", "unlisted"]


class TestDeparted:
    """Members that a node shows and the API server does not have."""

    def test_one_whose_end_was_told_is_named_at_once_and_once_a_minute(self, cluster: Cluster, clock: Clock):
        cluster.apply_pods(Changes(rows=(pod("p", node="a"), pod("q", node="a")), whole=True))
        tell(cluster, "a", reservation("p", "0"), reservation("q", "0"))
        assert cluster.departed("a") == []
        cluster.apply_pods(Changes(gone=("p",)))
        assert cluster.departed("a") == ["p"]
        assert cluster.departed("a") == []
        clock.now += 60
        assert cluster.departed("a") == ["p"]

    def test_one_that_was_never_listed_may_be_on_its_way(self, cluster: Cluster, clock: Clock):
        """As after a restart of the extender: a pod that ended before, or one that the watch is yet to tell of."""
        tell(cluster, "a", reservation("ghost", "0"), reservation("late", "0"))
        assert cluster.departed("a") == [], "nothing is known of the cluster's pods"
        cluster.apply_pods(Changes(whole=True))
        assert cluster.departed("a") == []
        cluster.apply_pods(Changes(rows=(pod("late", node="a"),)))
        clock.now += 60
        assert cluster.departed("a") == ["ghost"]

    def test_of_a_node_that_is_not_known_nobody_has(self, cluster: Cluster):
        cluster.apply_pods(Changes(whole=True))
        assert cluster.departed("nowhere") == []


def test_an_enforcer_that_begins_anew_finds_what_was_assumed(cluster: Cluster):
    tell(cluster, "a")
    cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    cluster.reported(NodeView("a", "another session", "1", machine()), Report(1, 0, fingerprint([], [])))
    assert list(reservations_of(cluster, "a")) == ["p"]


def test_members_elsewhere_weigh_against_a_node(cluster: Cluster):
    """One member of ten is less than nine of ten, though each node's own members are all at home."""
    tell(cluster, "a", reservation("k0", "0", milli=100))
    tell(cluster, "b", *(reservation(f"k{at}", "0", milli=100) for at in range(1, 10)))
    result = scores(cluster, want("p"), "a", "b")
    assert result["b"] == 10
    assert result["a"] <= 4


def test_the_first_member_goes_where_the_whole_group_has_room(cluster: Cluster):
    tell(cluster, "small", of=machine(2, 4))
    tell(cluster, "large", reservation("other", "0", group="default/other", milli=4000), of=machine(2, 16))
    result = scores(cluster, want("p", cpu="1", size="12"), "small", "large")
    assert result["large"] > result["small"]


def test_what_happened_is_kept_for_explain(cluster: Cluster):
    row = DecisionRow(
        "u", "default", "p", "main", "create", "1", "8-15", "1", 0.5, (Reason("kin", "", "near"),), "kept", "1", 2
    )
    cluster.connected("a")
    report = Report(1, 0, fingerprint([], []), decisions=(row,))
    cluster.reported(NodeView("a", "s", "1", machine()), report)
    result = explain(cluster, "default", "p")
    assert result["happened"][0]["reasons"] == ["kin: near"]
    assert result["scored"] is None


def test_a_container_that_sits_on_the_cpus_and_stays_there_fails_no_prediction(cluster: Cluster):
    """It has not opted in, so it is never moved; the next container of the pod is decided all the same."""
    elsewhere = Allocation("other", "main", "x", "other", CpuSet.parse("0-15"))
    view = NodeView("a", "session", "1", machine())
    cluster.connected("a")
    cluster.reported(view, Report(1, 0, fingerprint([], [elsewhere]), (), (), (elsewhere,)))
    two = replace(pod("p", cpu="2", cpus="exclusive"), containers=(*pod("p", cpu="2").containers, SECOND))
    asked = wanted(two)
    assert scores(cluster, asked, "a")["a"] > 0


@pytest.mark.parametrize(
    ("cpu", "held"),
    [("5", {"p": "0"}), ("7", {"p/second": "0", "p/main": "1"})],
    ids=["a NUMA node holds it", "none does"],
)
def test_a_pod_whose_containers_are_placed_one_by_one_is_one_member(cluster: Cluster, cpu: str, held: dict):
    """8 CPUs on each NUMA node; the second container asks for two."""
    tell(cluster, "a", of=machine(2, 8))
    (nomination,) = cluster.apply_pods(
        Changes(rows=(pod("p", node="a", cpu=cpu, beside=(SECOND,), scope="container"),))
    )
    assert reservations_of(cluster, "a") == held
    assert nomination.numa_nodes == NumaSet.of(map(int, held.values()))
    (group,) = groups(cluster.picture()).rows
    assert [(row["uid"], row["numa_nodes"]) for row in group["members"]] == [("p", str(nomination.numa_nodes))]
    view = cluster.view("a")
    assert view is not None
    assert sum(reservation.demand.cpu_milli for reservation in view.index.members) == 1000 * (int(cpu) + 2)


def test_exclusive_cpus_of_assumed_pods_are_not_nominated_twice(cluster: Cluster):
    tell(cluster, "a", of=machine(1, 8, 64 * GIB))
    for at in range(3):
        (nomination,) = cluster.apply_pods(Changes(rows=(pod(f"p{at}", node="a", cpu="2", cpus="exclusive"),)))
        assert nomination.numa_nodes == NumaSet.parse("0")
    view = cluster.view("a")
    assert len(view.occupancy.exclusive) == 6
    (nomination,) = cluster.apply_pods(Changes(rows=(pod("p3", node="a", cpu="2", cpus="exclusive"),)))
    assert nomination.numa_nodes == NumaSet.parse("0"), "it shares: the machine keeps a CPU"
    view = cluster.view("a")
    assert view is not None
    assert len(view.occupancy.exclusive) == 6
