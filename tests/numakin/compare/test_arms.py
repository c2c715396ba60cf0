"""Which CPUs each way has, on machines of the field."""

from __future__ import annotations

import pytest

from lab.standins.machines import MACHINES
from numakin.compare.arms import AGAIN, SPREAD, TOGETHER, UNPINNED, NothingToCompare, arms
from numakin.placement.model.cpuset import CpuSet
from tests.extender.running import machine


@pytest.mark.parametrize("name", ["xeon-8380", "epyc-7763-nps4", "kunpeng-920-4s"])
def test_either_end_has_as_many_cpus_together_as_apart(name):
    of = MACHINES[name].machine
    ways = {way.name: way for way in arms(of, of.cpus)}
    together, spread = ways[TOGETHER], ways[SPREAD]
    assert len(together.server) == len(together.client) == len(spread.server) == len(spread.client)
    assert not together.server & together.client
    assert of.nodes_of(together.server) == of.nodes_of(together.client) == of.nodes_of(spread.server)
    assert not of.nodes_of(spread.server) & of.nodes_of(spread.client)
    assert (ways[UNPINNED].server, ways[UNPINNED].client) == (ways[AGAIN].server, ways[AGAIN].client)


@pytest.mark.parametrize("name", MACHINES)
def test_either_end_has_as_many_whole_cores_in_each_way(name):
    of = MACHINES[name].machine
    if len(of.cpu_nodes) < 2 or len(of.cores_by_node[of.cpu_nodes.lowest]) < 2:
        with pytest.raises(NothingToCompare):
            arms(of, of.cpus)
        return
    pinned = [way for way in arms(of, of.cpus) if way.name in (TOGETHER, SPREAD)]
    sizes = set()
    for way in pinned:
        server, client = ({of.core_of(cpu) for cpu in end} for end in (way.server, way.client))
        assert not server & client, "no core has CPUs of both ends"
        assert all(core <= way.server for core in server)
        assert all(core <= way.client for core in client)
        sizes |= {(len(server), len(way.server)), (len(client), len(way.client))}
    assert len(sizes) == 1


def test_only_usable_cpus_are_used():
    ways = arms(machine(2, cpus=4), CpuSet.parse("1-6"))
    assert {str(way.server) for way in ways} == {"1", "1-6"}


def test_a_sibling_that_is_not_usable_makes_no_end_smaller_than_another():
    """xeon-8380: CPUs 0 and 80 are siblings, 40 and 120 those of the first core of the other NUMA node."""
    together, spread, *_ = arms(MACHINES["xeon-8380"].machine, CpuSet.parse("0-2,81-82,40-41,120"))
    assert (str(together.server), str(together.client)) == ("1,81", "2,82")
    assert (str(spread.server), str(spread.client)) == ("1,81", "40,120")


@pytest.mark.parametrize(
    ("usable", "why"),
    [("0-3", "all on one NUMA node"), ("0,4-7", r"do not fit on NUMA node 0 \(usable CPUs 0\)"), ("", "no CPU")],
)
def test_a_machine_with_nothing_to_compare_is_told_so(usable, why):
    with pytest.raises(NothingToCompare, match=why):
        arms(machine(2, cpus=4), CpuSet.parse(usable))
