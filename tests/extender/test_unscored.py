"""Pods that were bound without kube-scheduler having asked for scores: one node, a nominated one, a group's placement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.reports.outgoing import expect
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.views.explain import explain
from lab.standins.apiserver import ApiServer
from lab.standins.patience import until
from numakin.placement.model.cpuset import NumaSet
from tests.clock import Clock
from tests.extender.machines import pod, want
from tests.extender.running import Extender, machine, reservation
from tests.extender.told import tell
from tests.numakin.kubectl.asking import ask


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """kube-scheduler asks here: another pod was scored."""
    tell(cluster, "a", reservation("kin", "1"))
    tell(cluster, "b")
    cluster.apply_pods(Changes(rows=(pod("kin", node="a"),), whole=True))
    cluster.score(want("other", group="others"), ["a", "b"])
    return cluster


def counted(cluster: Cluster) -> dict[str, int]:
    return {why: count for why, count in cluster.picture().unscored.items() if count}


def bound(cluster: Cluster, row: PodRow, node: str = "a"):
    """What its node's enforcer is sent."""
    cluster.apply_pods(Changes(rows=(row,)))
    (nomination,) = cluster.apply_pods(Changes(rows=(replace(row, node=node),)))
    return expect(nomination).expect


def told(cluster: Cluster, name: str) -> str:
    answer = explain(cluster, "default", name)
    assert answer is not None
    assert answer["group"] == "default/shop"
    return str(answer["unscored"])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (pod("p"), "not asked"),
        (replace(pod("p"), nominated="a"), "nominated node"),
        (replace(pod("p"), nominated="b"), "not asked"),
        (replace(pod("p"), scheduling_group="gang"), "scheduling group"),
        (replace(pod("p"), owner=OwnerRow("Node", "a")), "static pod"),
    ],
    ids=["no choice", "nominated", "another node was nominated", "a placement of one node", "static"],
)
def test_each_is_counted_by_what_is_seen_of_the_reason(cluster: Cluster, row: PodRow, why: str):
    bound(cluster, row)
    assert counted(cluster) == {why: 1}
    assert told(cluster, "p").startswith("kube-scheduler did not ask")


def test_it_is_told_of_the_pods_of_a_list_too(cluster: Cluster):
    bound(cluster, pod("p"))
    assert {*cluster.unscored(["p", "kin", "nobody"])} == {"p"}
    assert cluster.unscored(["p"])["p"] == told(cluster, "p")


def test_one_whose_filter_call_named_one_node_is_counted_as_that(cluster: Cluster):
    """With the filter verb the extender is asked about that node."""
    cluster.apply_pods(Changes(rows=(pod("p"),)))
    cluster.passed(want("p"), "a")
    cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    assert counted(cluster) == {"one node": 1}
    assert "one node alone" in told(cluster, "p")


def test_their_enforcer_is_sent_kin_and_a_place_like_any_other_s(cluster: Cluster):
    sent = bound(cluster, pod("p"))
    assert sent.numa_nodes == "1"
    assert sent.pod_demand.cpu_milli == 500
    away = bound(cluster, pod("q"), "b")
    assert NumaSet.parse(away.numa_nodes)
    assert away.kin_elsewhere > 0


def test_one_that_was_scored_among_several_nodes_is_not_counted(cluster: Cluster):
    cluster.apply_pods(Changes(rows=(pod("p"),)))
    cluster.score(want("p"), ["a", "b"])
    cluster.apply_pods(Changes(rows=(pod("p", node="a"),)))
    assert counted(cluster) == {}
    answer = explain(cluster, "default", "p")
    assert answer is not None
    assert answer["unscored"] is None


@pytest.mark.parametrize(
    "changes",
    [
        Changes(rows=(pod("p", node="a"), pod("kin", node="a")), whole=True),
        Changes(rows=(pod("p", group="", node="a"),)),
    ],
    ids=["bound before this extender's time", "not opted in"],
)
def test_nor_is_one_of_whom_nothing_was_missed(cluster: Cluster, changes: Changes[PodRow]):
    cluster.apply_pods(changes)
    assert counted(cluster) == {}


def test_a_replica_that_kube_scheduler_does_not_ask_counts_none(cluster: Cluster, clock: Clock):
    """Another one gave the scores; explain says that it was not asked."""
    clock.now += 601
    bound(cluster, pod("p"))
    assert counted(cluster) == {}
    assert "did not ask this extender" in told(cluster, "p")


def test_a_pod_is_explained_by_its_group_also_where_no_api_server_is_asked(cluster: Cluster):
    tell(cluster, "a", reservation("kin", "1"), reservation("p", "1"), generation=2)
    assert cluster.group_on_node("p") == "default/shop"
    assert cluster.group_on_node("nobody") == ""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        made.create_node("n1")
        yield made


def test_a_real_extender_says_so_of_a_pod_that_was_bound_unasked(watching: Extender, server: ApiServer):
    watching.enforcer("n1").report(machine())
    server.create_pod("web", annotations={"group.numakin.io": "shop"})
    server.bind("web", "n1")
    path = "/api/v1/explain?namespace=default&pod=web"
    until(lambda: watching.ask("GET", path)[1].get("unscored"), "the pod is known to be bound")
    answer = watching.get(path)
    assert (answer["group"], answer["scored"]) == ("default/shop", None)
    assert answer["unscored"].startswith("kube-scheduler did not ask this extender for scores: one node was feasible")
    lines = ask("explain", "pod", "web", "-n", "default", f"--extender=http://{watching.web_address}").lines
    assert lines[0].startswith("room is held for web on NUMA node ")
    assert lines[1] == "pod default/web, group default/shop"
    assert any(line.startswith("kube-scheduler did not ask") for line in lines)
