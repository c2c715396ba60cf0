"""How many pods of a workload there are, on which node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from extender.planning.replica_counts import ReplicaCount, ReplicaCounts
from extender.state.pods import OwnerRow, PodRow
from tests.extender.machines import pod

WEB = OwnerRow("Deployment", "web")


@st.composite
def rows(draw: st.DrawFn) -> PodRow:
    name = draw(st.sampled_from("abc"))
    row = pod(name, group=draw(st.sampled_from(["shop", ""])), node=draw(st.sampled_from(["", "n1", "n2"])))
    phase = draw(st.sampled_from(["Pending", "Running", "Succeeded"]))
    return replace(row, owner=WEB, leaving=draw(st.booleans()), phase=phase)


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
    assert counts.anywhere("default/Deployment/web").bound == nodes["n1"] + nodes["n2"]
    assert counts.total("default/Deployment/web") == len(live)
