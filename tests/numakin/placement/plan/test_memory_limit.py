"""How much memory movers may leave behind at a time."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.plan.chains import Ways
from numakin.placement.plan.memory_limit import MemoryLimit
from tests.machines import SMALL, machine
from tests.numakin.placement.plan.seated import seated

BARE = machine("the second NUMA node has no memory", ["0-3", "4-7"], [8, 0])

MEMORY = {"a": {0: 100, 1: 20}, "b": {0: 7, 1: 50}, "c": {}}


def limit(left: float, on: Machine = SMALL) -> MemoryLimit:
    """a and c are on the first NUMA node, b on the second."""
    occupancy, _ = seated({"a": "0", "b": "1", "c": "0"})
    return MemoryLimit(on, occupancy, MEMORY.__getitem__, left)


def ways(**targets: str) -> Ways:
    return frozenset((key, NumaSet.parse(target), CpuSet()) for key, target in targets.items())


@pytest.mark.parametrize(
    ("step", "leaves"),
    [
        (ways(a="1"), 100),
        (ways(b="0"), 50),
        (ways(a="1", b="0"), 150),
        (ways(a="0-1"), 0),
        (ways(a="0"), 0),
        (ways(c="1"), 0),
    ],
    ids=["what is where it is", "the other way", "two that change places", "none of it", "between caches", "not known"],
)
def test_what_a_step_leaves_is_the_memory_on_the_numa_nodes_that_its_members_go_from(step: Ways, leaves: int) -> None:
    assert limit(1000).leaves(step) == leaves
    assert limit(leaves).allows(step)
    assert limit(leaves - 1).allows(step) is (leaves == 0)


def test_where_a_numa_node_has_no_memory_the_nearest_counts() -> None:
    """From one that has it to one that has none nothing is left: the memory is as near as before."""
    assert limit(1000, BARE).leaves(ways(a="1")) == 0


def test_without_a_limit_nobodys_memory_is_asked_for() -> None:
    occupancy, _ = seated({"a": "0"})
    endless = MemoryLimit(SMALL, occupancy, {}.__getitem__, inf)
    assert endless.allows(ways(a="1"))
    assert endless.after(ways(a="1")).left == inf


@given(left=st.integers(-200, 400), first=st.sampled_from("abc"), other=st.sampled_from("abc"))
def test_one_after_the_other_may_leave_as_much_as_together(left: int, first: str, other: str) -> None:
    if first == other:
        return
    targets = {"a": "1", "b": "0", "c": "1"}
    both = ways(**{key: targets[key] for key in (first, other)})
    alone = ways(**{first: targets[first]})
    now = limit(left)
    after = now.after(alone)
    assert after.left == left - now.leaves(alone)
    if now.allows(both) and now.leaves(both):
        assert now.allows(alone)
        assert after.allows(ways(**{other: targets[other]}))
