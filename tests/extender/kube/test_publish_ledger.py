"""What is due to be written: the kinds take turns, and what was refused says nothing of another object in its place."""

from __future__ import annotations

from dataclasses import replace

from extender.kube import publish
from extender.kube.objects.affinitygroup import GroupStatus, affinity_group
from extender.kube.objects.nrt import topology
from extender.kube.publish import AppliedDigests
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.topology import Machine, NumaNode
from numakin.placement.state.occupancy import Occupancy

CART = GroupStatus("default", "cart")


def test_a_group_does_not_wait_for_the_objects_of_thousands_of_nodes():
    node = Machine((NumaNode(0, CpuSet.of((0,)), 1 << 30, {0: 10}),))
    nodes = [topology(f"n{at}", node, Occupancy(), f"uid-{at}") for at in range(1000)]
    due = AppliedDigests().due([*nodes, affinity_group(CART)], now=0.0)
    assert len(due) == publish.PER_ROUND
    assert [entry.kind for entry in due[:3]] == ["NodeResourceTopology", "AffinityGroup", "NodeResourceTopology"]


def test_an_object_that_was_left_alone_and_deleted_is_made_anew_at_once():
    """Somebody deleted it while it was written, which was refused."""
    first, none = affinity_group(replace(CART, uid="the first")), affinity_group(CART)
    ledger = AppliedDigests(aside={first.path: ("the first", 600.0)})
    assert ledger.due([first], now=1.0) == []
    assert ledger.due([none], now=1.0) == [none]
