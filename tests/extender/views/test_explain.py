"""Of which pod a name is explained, and what is said of one that nothing is known of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from extender.cluster import Cluster
from extender.state.node_report import DecisionRow, Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes, PodRow
from extender.views.explain import explain, unknown
from numakin.placement.decide.decide import Reason
from numakin.placement.state.occupancy import Reservation, fingerprint
from tests.clock import Clock
from tests.extender.machines import pod, want
from tests.extender.running import machine, reservation
from tests.extender.told import tell

LEFT_OPEN = (Reason("fits nowhere", "400 CPUs", "left open over all 2 NUMA nodes"),)


def scored(cluster: Cluster, namespace: str, name: str) -> None:
    asked = want(name)
    cluster.score(replace(asked, pod=replace(asked.pod, namespace=namespace, name=name)), ["a"])


def decided(cluster: Cluster, uid: str, name: str, reasons: tuple[Reason, ...] = (), *, generation: int = 1) -> None:
    """Its node shows it, and why it is there."""
    row = DecisionRow(uid, "default", name, "main", "create", "1", "8-15", "1", 1.0, reasons, "kept", "1", generation)
    _report(cluster, [reservation(uid, "1")], [row], generation)


def shows_none(cluster: Cluster, generation: int = 2) -> None:
    _report(cluster, [], [], generation)


def _report(cluster: Cluster, there: Iterable[Reservation], rows: Iterable[DecisionRow], generation: int) -> None:
    there = tuple(there)
    report = Report(generation, 0, fingerprint(there, []), there, decisions=tuple(rows))
    cluster.reported(NodeView("a", "session", "1", machine()), report)


def named(uid: str, name: str, node: str = "") -> PodRow:
    return replace(pod(uid, node=node), name=name)


def listed(cluster: Cluster, *rows: PodRow) -> None:
    cluster.apply_pods(Changes(rows=rows, whole=True))


def summary(cluster: Cluster, name: str) -> str:
    answer = explain(cluster, "default", name)
    assert answer is not None
    return str(answer["summary"])


@pytest.mark.parametrize("reasons", [(), LEFT_OPEN], ids=["pinned", "left open"])
def test_one_that_ended_is_said_to_have_and_what_was_decided_is_told(cluster: Cluster, reasons: tuple[Reason, ...]):
    cluster.connected("a")
    decided(cluster, "p", "p", reasons)
    listed(cluster, pod("p", node="a"))
    assert summary(cluster, "p") != "p has ended"
    cluster.apply_pods(Changes(gone=("p",)))
    shows_none(cluster)
    answer = explain(cluster, "default", "p")
    assert answer is not None
    assert answer["summary"] == "p has ended"
    assert [row["container"] for row in answer["happened"]] == ["main"]


def test_a_name_is_that_of_the_pod_that_has_it_now(cluster: Cluster):
    """As of a StatefulSet, whose former pod is remembered until the new one is scored."""
    cluster.connected("a")
    decided(cluster, "former", "cart-0", LEFT_OPEN)
    listed(cluster, named("former", "cart-0", "a"))
    cluster.apply_pods(Changes(gone=("former",)))
    cluster.apply_pods(Changes(rows=(named("new", "cart-0"),)))
    answer = explain(cluster, "default", "cart-0")
    assert answer is not None
    assert (answer["uid"], answer["summary"], answer["happened"]) == ("new", "cart-0 waits for a node", [])


def test_one_of_which_nothing_is_remembered_is_explained_by_where_it_is(cluster: Cluster):
    """As after a start of the extender."""
    tell(cluster, "a", reservation("p", "1"))
    listed(
        cluster,
        *(replace(pod(name, node=node), phase="Running") for name, node in (("p", "a"), ("q", "a"), ("r", "b"))),
    )
    assert summary(cluster, "p") == "p is on NUMA node 1 of a"
    assert summary(cluster, "q") == "q is on a, whose enforcer has not reported it"
    assert summary(cluster, "r") == "r is on b, where no enforcer reports"


def test_one_that_was_just_scored_and_the_watch_has_not_shown_has_not_ended(cluster: Cluster, clock: Clock):
    tell(cluster, "a")
    listed(cluster)
    cluster.score(want("p"), ["a"])
    assert summary(cluster, "p") == ""
    clock.now += 60
    assert summary(cluster, "p") == "p has ended"


def test_one_that_has_not_opted_in_is_said_to_be_left_alone(cluster: Cluster):
    listed(cluster, pod("p", group="", node="a"), pod("q", group="my shop", node="a"))
    assert explain(cluster, "default", "p") is None
    alone = "has no annotation group.numakin.io that counts: numakin leaves it alone"
    assert unknown(cluster, "default", "p") == f"pod default/p {alone}"
    assert unknown(cluster, "default", "q").startswith(
        f"pod default/q {alone}; annotation group.numakin.io: 'my shop' is not allowed"
    )


def test_of_one_that_is_not_there_those_are_named_that_could_be_meant(cluster: Cluster):
    listed(cluster, pod("cart-1"), pod("web-1"))
    assert (
        unknown(cluster, "default", "cart-2")
        == "the API server has no pod default/cart-2 that has not ended; known are cart-1"
    )
    assert unknown(cluster, "bank", "cart-1") == "the API server has no pod bank/cart-1 that has not ended"


def test_only_pods_of_its_own_namespace_are_named(cluster: Cluster) -> None:
    tell(cluster, "a")
    scored(cluster, "shop", "cart-1")
    scored(cluster, "bank", "cart-2")
    assert unknown(cluster, "shop", "cart").endswith("; known are cart-1")
    assert unknown(cluster, "elsewhere", "cart").endswith(
        "; no pod of namespace elsewhere is known that has the annotation group.numakin.io itself"
    )
