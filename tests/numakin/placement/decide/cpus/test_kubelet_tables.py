"""The cases by which the kubelet's static CPU manager is tested: the same CPUs, or others for a reason that is written."""

from __future__ import annotations

import pytest

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.rules import Rules
from numakin.placement.optin.parsing import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests.numakin.placement.asking import asks
from tests.numakin.placement.kubelet_tables import ACROSS_CORES, BY_CACHE, DISTRIBUTED, PACKED, Case


def taken(case: Case, rules: Rules) -> str:
    """What cannot be had is reserved; nobody else is there."""
    before = Occupancy(reserved=case.machine.cpus - CpuSet.parse(case.free), rules=rules)
    kind = Cpus.EXCLUSIVE_CORES if case.cores else Cpus.EXCLUSIVE
    return str(decide(case.machine, before, asks("a", case.wanted, 0, cpus=kind), Kin()).exclusive)


@pytest.mark.parametrize("case", [*PACKED.values(), *BY_CACHE.values()], ids=[*PACKED, *BY_CACHE])
def test_by_default(case: Case):
    assert taken(case, Rules()) == (case.taken if case.ours is None else case.ours)
    assert bool(case.why) == (case.ours is not None)


@pytest.mark.parametrize("case", DISTRIBUTED.values(), ids=DISTRIBUTED)
def test_with_distribute_cpus_across_numa(case: Case):
    assert taken(case, Rules(distribute_cpus_across_numa=True)) == (case.taken if case.ours is None else case.ours)


@pytest.mark.parametrize("case", ACROSS_CORES.values(), ids=ACROSS_CORES)
def test_with_distribute_cpus_across_cores(case: Case):
    assert taken(case, Rules(distribute_cpus_across_cores=True)) == case.taken


def test_whole_cores_that_are_asked_for_stay_whole():
    case = PACKED["a core"]._replace(cores=True)
    assert taken(case, Rules(distribute_cpus_across_cores=True)) == case.taken


def test_second_threads_come_when_every_core_has_given_one():
    case = PACKED["a core"]._replace(wanted=6)
    assert taken(case, Rules(distribute_cpus_across_cores=True)) == "0-5"


def test_what_one_numa_node_holds_is_never_distributed():
    case = PACKED["a NUMA node"]
    assert taken(case, Rules(distribute_cpus_across_numa=True)) == case.taken
