"""How much of a member's memory is where its CPUs are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numakin.placement.model.cpuset import NumaSet
from numakin.placement.model.topology import Machine
from numakin.placement.state.memory_places import MemoryPlaces, home_of, size
from tests.machines import SMALL, machine

BARE = machine("the second NUMA node has no memory", ["0-3", "4-7"], [8, 0])

amounts = st.dictionaries(st.integers(0, 7), st.integers(0, 1 << 50))


@given(by_node=amounts, home=st.sets(st.integers(0, 7)))
def test_each_byte_is_near_or_away(by_node: dict[int, int], home: set[int]) -> None:
    places = MemoryPlaces.of(by_node, NumaSet.of(home))
    assert places.whole == sum(by_node.values())
    assert places.near == sum(amount for node, amount in by_node.items() if node in home)


@given(first=amounts, other=amounts)
def test_several_are_added(first: dict[int, int], other: dict[int, int]) -> None:
    home = NumaSet.parse("0-3")
    both = MemoryPlaces.of(first, home) + MemoryPlaces.of(other, home)
    assert both.whole == sum(first.values()) + sum(other.values())


@pytest.mark.parametrize(
    ("on", "numa_nodes", "home"),
    [
        (SMALL, "1", "1"),
        (SMALL, "0-1", "0-1"),
        (BARE, "1", "0"),
        (SMALL, "5", ""),
        (SMALL, "1,5", "1"),
        (SMALL, "", ""),
    ],
    ids=[
        "its own",
        "of all of them",
        "of the nearest where it has none",
        "a NUMA node that is gone",
        "one of two",
        "none",
    ],
)
def test_what_is_near(on: Machine, numa_nodes: str, home: str) -> None:
    assert home_of(on, NumaSet.parse(numa_nodes)) == NumaSet.parse(home)


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "0 MiB"), (300 << 20, "300 MiB"), (1 << 30, "1.0 GiB"), (24 << 30, "24.0 GiB")]
)
def test_sizes_are_told_in_words(amount: int, words: str) -> None:
    assert size(amount) == words
