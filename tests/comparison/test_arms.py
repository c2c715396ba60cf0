"""Which CPUs each way has, on machines of the field."""

from __future__ import annotations

import pytest

from comparison.arms import AGAIN, SPREAD, TOGETHER, UNPINNED, NothingToCompare, arms
from enforcer.machine.sysfs import read_machine
from placement.model.cpuset import CpuSet
from standins.machines import MACHINES, write_sysfs
from tests.extender.running import machine


@pytest.mark.parametrize("name", ["xeon-8380", "epyc-7763-nps4", "kunpeng-920-4s"])
def test_either_end_has_as_many_cpus_together_as_apart(name, tmp_path):
    write_sysfs(MACHINES[name], tmp_path)
    of = read_machine(tmp_path)
    ways = {way.name: way for way in arms(of, of.cpus)}
    together, spread = ways[TOGETHER], ways[SPREAD]
    assert len(together.server) == len(together.client) == len(spread.server) == len(spread.client)
    assert not together.server & together.client
    assert of.nodes_of(together.server) == of.nodes_of(together.client) == of.nodes_of(spread.server)
    assert not of.nodes_of(spread.server) & of.nodes_of(spread.client)
    assert (ways[UNPINNED].server, ways[UNPINNED].client) == (ways[AGAIN].server, ways[AGAIN].client)


def test_only_usable_cpus_are_used():
    ways = arms(machine(2, cpus=4), CpuSet.parse("1-6"))
    assert {str(way.server) for way in ways} == {"1", "1-6"}


@pytest.mark.parametrize(
    ("usable", "why"), [("0-3", "all on one NUMA node"), ("0,4-7", "one usable CPU"), ("", "no CPU")]
)
def test_a_machine_with_nothing_to_compare_is_told_so(usable, why):
    with pytest.raises(NothingToCompare, match=why):
        arms(machine(2, cpus=4), CpuSet.parse(usable))
