"""Exclusive CPUs that are more than was asked for, of pods with other containers beside: these have no part in them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numakin.placement.decide.decide import Kin, Request, decide
from numakin.placement.model.live_usage import Live
from numakin.placement.optin.parsing import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests import examples, machines
from tests.numakin.placement.asking import asks, demand, filled, settle

CORES = machines.machine("8 cores", ["0-15"], [64], threads=[f"{cpu},{cpu + 8}" for cpu in range(8)])

TWO_NODES = machines.machine(
    "two", ["0-3,8-11", "4-7,12-15"], [64, 64], threads=[f"{cpu},{cpu + 8}" for cpu in range(8)]
)

PODS = st.tuples(st.sampled_from(Cpus), st.sampled_from([0.5, 1, 1.5, 2, 3, 4]), st.sampled_from([0, 0.5, 1, 2]))
"""Of a main container whose CPUs they are and how many, and what another one beside it asks for."""


def beside(pod: str, cpu: float, kind: Cpus, side: float, **more) -> tuple[Request, Request]:
    """The main container of a pod, and one beside it that shares."""
    whole = demand(cpu + side, 2)
    main = asks(pod, cpu, 1, cpus=kind, pod_demand=whole, **more)
    return main, asks(pod, side, 1, name="side", pod_demand=whole, **more)


def test_what_they_ask_for_is_kept_in_the_pool():
    three = [request for pod in "abc" for request in beside(pod, 3, Cpus.EXCLUSIVE_CORES, 1)]
    before = filled(CORES, *three)
    assert before.cpu_load(CORES) == {0: 15_000}
    assert not decide(CORES, before, asks("z", 1), Kin()).share_again
    decision, after = settle(CORES, before, asks("z", 4))
    assert (decision.fits, decision.share_again) == (True, ("a-main", "b-main", "c-main"))
    assert after.cpu_load(CORES) == {0: 16_000}


@pytest.mark.parametrize(("free", "own"), [(5, 4), (4, 0)], ids=["beside it", "not beside it"])
def test_a_container_has_cpus_of_its_own_where_its_own_pods_fit(free, own):
    main, side = beside("a", 3, Cpus.EXCLUSIVE_CORES, 1)
    first, before = settle(CORES, filled(CORES, asks("x", 16 - free)), main)
    assert len(before.allocations["a-main"].exclusive) == own
    assert ("its pod needs 5 with them" in first.sentence) == (not own)
    decision, after = settle(CORES, before, side)
    assert decision.fits
    assert after.cpu_load(CORES)[0] <= 16_000


def test_it_does_not_matter_which_of_them_comes_first():
    main, side = beside("a", 1.5, Cpus.EXCLUSIVE, 0.5)
    loads = [filled(machines.NO_NUMA, *order).cpu_load(machines.NO_NUMA) for order in ((main, side), (side, main))]
    assert loads == [{0: 2500}, {0: 2500}]


def test_each_of_several_is_rounded_up():
    one = asks("a", 1.5, name="one", cpus=Cpus.EXCLUSIVE, pod_demand=demand(3.2))
    two = replace(one, name="two", container="a-two")
    side = asks("a", 0.2, name="side", pod_demand=demand(3.2))
    wide = machines.machine("8 CPUs", ["0-7"], [16])
    assert filled(wide, one, two, side).cpu_load(wide) == {0: 4200}


def test_it_is_lent_though_they_ask_for_as_much():
    before = filled(machines.NO_NUMA, *beside("a", 1.5, Cpus.EXCLUSIVE, 0.5), asks("y", 1))
    decision, after = settle(machines.NO_NUMA, before, asks("z", 1))
    assert (decision.fits, decision.share_again) == (True, ("a-main",))
    assert after.cpu_load(machines.NO_NUMA) == {0: 4000}


def test_a_container_of_the_same_pod_that_asks_for_whole_cpus_keeps_them():
    whole = demand(3.5)
    odd = asks("a", 1.5, name="odd", cpus=Cpus.EXCLUSIVE, pod_demand=whole)
    even = asks("a", 2, name="even", cpus=Cpus.EXCLUSIVE, pod_demand=whole)
    wide = machines.machine("6 CPUs", ["0-5"], [16])
    decision, after = settle(wide, filled(wide, odd, even, asks("y", 1)), asks("z", 1.5))
    assert (decision.fits, decision.share_again) == (True, ("a-odd",))
    assert after.cpu_load(wide) == {0: 6000}


def test_who_gives_its_cpus_back_before_the_pod_is_up_has_those_of_the_rest():
    init = asks("a", 3, name="init", cpus=Cpus.EXCLUSIVE_CORES, pod_demand=demand(4))
    before = filled(CORES, asks("x", 12))
    assert decide(CORES, before, init, Kin()).shares_instead
    decision, after = settle(CORES, before, replace(init, lasts=False))
    assert len(decision.exclusive) == 4
    assert after.cpu_load(CORES) == {0: 16_000}


def test_of_an_older_enforcers_report_it_is_not_known():
    occupancy = filled(CORES, *beside("a", 3, Cpus.EXCLUSIVE_CORES, 1))
    own = occupancy.allocations["a-main"]
    older = occupancy.reported((), (), (replace(own, rounded_up=0),), (), Live())
    assert (occupancy.cpu_load(CORES), older.cpu_load(CORES)) == ({0: 5000}, {0: 4000})
    assert occupancy.fingerprint == older.fingerprint, "no end has to know it"


@settings(max_examples=examples.of(100), deadline=None)
@given(st.lists(PODS, max_size=9))
def test_no_pool_is_asked_for_more_than_it_has(pods):
    """Whatever comes, as long as all have a home."""
    occupancy, sharing = Occupancy(), {}
    for at, (kind, cpu, side) in enumerate(pods):
        for request in beside(f"p{at}", cpu, kind, side) if side else (asks(f"p{at}", cpu, 1, cpus=kind),):
            decision, occupancy = settle(TWO_NODES, occupancy, request)
            if not decision.fits:
                return
            sharing[request.container] = request.demand.cpu_milli
    for numa_node in TWO_NODES.numa_nodes:
        asked = sum(
            milli
            for container, milli in sharing.items()
            if not (held := occupancy.allocations[container]).exclusive
            and occupancy.reservations[held.reservation].numa_nodes.mask == 1 << numa_node.id
        )
        assert asked <= 1000 * len(numa_node.cpus - occupancy.exclusive)
