"""The kernel's maps have room for each CPU that there could be, and stay within what the enforcer's pod may take."""

from __future__ import annotations

import pytest

from enforcer.observe.bpf.contract import EDGE_VALUE, PAIR_VALUE
from enforcer.observe.bpf.flow_map import EDGES, most_edges
from enforcer.observe.bpf.pair_map import PAIRS, most_pairs

MIB = 1 << 20


@pytest.mark.parametrize("cpus", [1, 128, 512])
def test_they_are_as_large_as_they_get_on_most_machines(cpus: int) -> None:
    assert (most_edges(cpus), most_pairs(cpus)) == (EDGES, PAIRS)


@pytest.mark.parametrize("cpus", [512, 960, 1792, 8192])
def test_on_the_largest_machines_they_take_no_more_memory(cpus: int) -> None:
    """Flows, and pairs of two kinds; the kernel keeps a value for each CPU from the map's beginning on."""
    taken = most_edges(cpus) * EDGE_VALUE.size * cpus + 2 * most_pairs(cpus) * PAIR_VALUE.size * cpus
    assert 160 * MIB < taken <= 192 * MIB
