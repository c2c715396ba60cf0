"""How many pods of a workload there are, on which node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from extender.planning.replica_counts import MOST_LEFT, ReplicaCount, ReplicaCounts
from extender.state.pods import OwnerRow, PodRow
from numakin.placement.model.demand import Demand
from tests.extender.machines import pod

WEB = OwnerRow("Deployment", "web")


@st.composite
def rows(draw: st.DrawFn) -> PodRow:
    name = draw(st.sampled_from("abc"))
    row = pod(name, group=draw(st.sampled_from(["shop", ""])), node=draw(st.sampled_from(["", "n1", "n2"])))
    phase = draw(st.sampled_from(["Pending", "Running", "Succeeded"]))
    overhead = draw(st.sampled_from([Demand(), Demand(100), Demand(50, 1)]))
    return replace(row, owner=WEB, leaving=draw(st.booleans()), phase=phase, overhead=overhead)


@given(st.lists(st.tuples(rows(), st.booleans()), max_size=20))
def test_after_any_changes_those_are_counted_that_opted_in_and_neither_ended_nor_leave(changes):
    counts, there = ReplicaCounts(), {}
    for row, stays in changes:
        counts.changed(there.pop(row.uid, None), row if stays else None)
        if stays:
            there[row.uid] = row
    live = [row for row in there.values() if row.annotations and not row.leaving and row.phase != "Succeeded"]
    nodes = Counter(row.node for row in live)
    for node in ("n1", "n2"):
        assert counts.on(node, "default/Deployment/web") == ReplicaCount(
            "default/Deployment/web", nodes[node], nodes[""]
        )
    bound = [row for row in there.values() if row.node and row.phase != "Succeeded"]
    assert counts.pods == Counter(row.node for row in bound)
    beside = {node: [row.overhead for row in bound if row.node == node] for node in ("n1", "n2")}
    for node, taken in beside.items():
        sums = sum(each.cpu_milli for each in taken), sum(each.memory for each in taken)
        assert counts.overhead.get(node, (0, 0)) == sums
    said = counts.beside.get("default/Deployment/web")
    assert said is None or said in {row.beside for row, _ in changes if row.annotations} - {(0, 0)}
    assert live or said is None
    assert counts.anywhere("default/Deployment/web").bound == nodes["n1"] + nodes["n2"]
    assert counts.total("default/Deployment/web") == len(live)


class TestWhatHasLeft:
    """What a node is told of that it may still expect."""

    def test_workloads_that_have_left_a_node_are_remembered_there_the_latest_first(self):
        counts = holding(web=["n1"], db=["n1"], cache=["n1", "n2"], front=["n2"])
        for name in ("web", "db"):
            counts.changed(replica(name, "n1"), None)
        counts.changed(replica("cache", "n1"), replace(replica("cache", "n1"), leaving=True))
        assert [*counts.left("n1", "default")] == [f"default/Deployment/{name}" for name in ("cache", "db", "web")]
        assert not [*counts.left("n2", "default")]
        assert not [*counts.left("n1", "other")]

    def test_who_comes_back_has_not_left(self):
        counts = holding(web=["n1"], front=["n1"])
        counts.changed(replica("web", "n1"), None)
        counts.changed(None, replica("web", "n1"))
        assert not [*counts.left("n1", "default")]

    def test_nothing_of_a_namespace_that_has_gone_as_a_whole_as_it_may_come_back_as_it_was(self):
        counts = holding(web=["n1"], db=["n1"])
        for name in ("web", "db"):
            counts.changed(replica(name, "n1"), None)
        counts.changed(None, replica("web", "n1"))
        assert not [*counts.left("n1", "default")]

    def test_of_more_than_the_bound_the_latest(self):
        counts = holding(front=["n1"])
        for number in range(MOST_LEFT + 1):
            counts.changed(None, replica(f"job-{number}", "n1"))
            counts.changed(replica(f"job-{number}", "n1"), None)
        left = [*counts.left("n1", "default")]
        assert len(left) == MOST_LEFT
        assert left[-1] == "default/Deployment/job-1"

    def test_what_leaves_a_copy_has_not_left_the_original(self):
        counts = holding(web=["n1"], front=["n1"])
        copied = counts.copy()
        copied.changed(replica("web", "n1"), None)
        assert [*copied.left("n1", "default")] == ["default/Deployment/web"]
        assert not [*counts.left("n1", "default")]


def holding(**workloads: list[str]) -> ReplicaCounts:
    """One pod of each of these on each of its nodes."""
    counts = ReplicaCounts()
    for name, where in workloads.items():
        for node in where:
            counts.changed(None, replica(name, node))
    return counts


def replica(workload: str, node: str) -> PodRow:
    return replace(pod(f"{workload}-{node}", group="shop", node=node), owner=OwnerRow("Deployment", workload))
