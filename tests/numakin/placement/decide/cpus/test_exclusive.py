"""Which CPUs become a container's own: caches first, then whole cores, then threads of broken ones."""

from __future__ import annotations

import pytest

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.optin.parsing import Cpus
from numakin.placement.state.occupancy import Occupancy
from tests import machines
from tests.numakin.placement.asking import asks, at, cpus, filled, nodes, settle

XEON, EPYC, NPS4 = machines.XEON, machines.EPYC_NPS1, machines.EPYC_NPS4
EIGHTS = machines.machine("two NUMA nodes of 8 CPUs", ["0-7", "8-15"], [8, 8])
OWN, CORES = Cpus.EXCLUSIVE, Cpus.EXCLUSIVE_CORES


def own(machine, before, *args, kin=None, **wishes):
    return decide(machine, before, asks(*args, **{"cpus": OWN, **wishes}), kin or at("0")).exclusive


@pytest.mark.parametrize(
    ("wanted", "kind", "given"),
    [
        (1, OWN, "0"),
        (2, OWN, "0,32"),
        (3, OWN, "0-1,32"),
        (4, OWN, "0-1,32-33"),
        (1, CORES, "0,32"),
        (2, CORES, "0,32"),
        (3, CORES, "0-1,32-33"),
        (2.5, OWN, "0-1,32"),
        (0, OWN, "0"),
    ],
)
def test_whole_cores_are_taken_whole(wanted, kind, given):
    assert own(XEON, Occupancy(), "a", wanted, cpus=kind, cpus_named=True) == cpus(given)


def test_an_odd_rest_completes_a_broken_core():
    before = filled(XEON, asks("a", 3, cpus=OWN))
    assert before.exclusive == cpus("0-1,32")
    assert own(XEON, before, "b", 3) == cpus("2,33-34")


def test_whole_cores_have_no_foreign_thread_on_a_sibling():
    before = filled(XEON, asks("a", 1, cpus=OWN))
    assert own(XEON, before, "b", 1, cpus=CORES) == cpus("1,33")
    after = filled(XEON, asks("b", 1, cpus=CORES))
    assert own(XEON, after, "c", 1) == cpus("1")


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_whole_cores_leave_a_shared_member_its_last_cpu_however_many_threads_they_have(threads):
    machine = machines.machine(
        f"two NUMA nodes, SMT{threads}",
        [f"0-{threads - 1}", f"{threads}-{3 * threads - 1}"],
        [64, 64],
        threads=[f"{threads * core}-{threads * core + threads - 1}" for core in range(3)],
    )
    _, before = settle(machine, Occupancy(), asks("a", 0, 1), at("0"))
    decision, after = settle(machine, before, asks("own", 1, 1, cpus=CORES), Kin({"a": 1.0}))
    assert decision.numa_nodes == nodes("1")
    assert after.allocations["a-main"].cpus == cpus(f"0-{threads - 1}")


def test_the_machine_keeps_a_cpu_beside_its_last_core():
    one_core = machines.machine("a core of four threads", ["0-3"], [8], threads=["0-3"])
    assert not own(one_core, Occupancy(), "a", 1, cpus=CORES)


def test_a_core_with_a_reserved_sibling_is_not_whole():
    assert own(XEON, Occupancy(reserved=cpus("32")), "a", 2, cpus=CORES) == cpus("1,33")


def test_offline_siblings_are_not_waited_for():
    taken = filled(machines.OFFLINE, asks("a", 1, cpus=CORES), asks("b", 1, cpus=CORES, group="shop/b"))
    assert taken.exclusive <= machines.OFFLINE.cpus


def test_they_lie_within_one_last_level_cache_where_that_holds_them():
    before = filled(EPYC, asks("a", 3, cpus=OWN))
    assert before.exclusive == cpus("0-1,32")
    assert own(EPYC, before, "b", 8, kin=Kin(elsewhere=1)) == cpus("4-7,36-39")


def test_the_fullest_cache_that_still_holds_them_is_taken_so_that_others_stay_whole():
    before = filled(EPYC, asks("a", 3, cpus=OWN))
    assert own(EPYC, before, "b", 4, group="shop/x", kin=Kin(elsewhere=1)) == cpus("2-3,34-35")


def test_kin_share_a_last_level_cache():
    apart = [asks("a", 3, cpus=OWN), asks("b", 6, cpus=OWN, group="shop/b")]
    before = filled(EPYC, *apart)
    assert before.allocations["b-main"].exclusive == cpus("4-6,36-38")
    assert own(EPYC, before, "c", 2, kin=Kin({"b": 1.0})) == cpus("7,39")
    assert own(EPYC, before, "c", 2, kin=Kin({"a": 1.0})) == cpus("2,34")


def test_one_cache_mate_of_more_weight_draws_more_than_two_of_less():
    before = filled(EPYC, *(asks(pod, 2, cpus=OWN) for pod in "ab"), asks("c", 6, cpus=OWN, group="shop/c"))
    assert [before.allocations[f"{pod}-main"].exclusive for pod in "abc"] == [*map(cpus, ("0,32", "1,33", "4-6,36-38"))]
    assert own(EPYC, before, "d", 2, kin=Kin({"a": 1.0, "b": 1.0, "c": 2.5})) == cpus("7,39")


def test_more_than_a_cache_takes_the_fullest_first_and_the_rest_where_it_fits_tightest():
    before = filled(EPYC, asks("a", 3, cpus=OWN))
    given = own(EPYC, before, "b", 12, group="shop/b")
    assert given == cpus("2-7,34-39")


def test_over_two_numa_nodes_each_gives_what_its_pool_can_spare():
    before = filled(XEON, asks("x", 28, group="x/0"), asks("y", 20, group="x/1"))
    decision, after = settle(XEON, before, asks("a", 14, cpus=OWN))
    assert decision.numa_nodes == nodes("0-1")
    assert len(decision.exclusive & XEON.node(0).cpus) <= 4
    assert len(decision.exclusive) == 14
    assert all(load <= 32_000 for load in after.cpu_load(XEON).values())


def test_asked_again_it_keeps_what_it_has_and_gives_back_what_is_too_much():
    before = filled(XEON, asks("a", 4, cpus=OWN))
    assert decide(XEON, before, asks("a", 4, cpus=OWN), Kin()).exclusive == before.exclusive
    assert len(decide(XEON, before, asks("a", 2, cpus=OWN), Kin()).exclusive) == 2
    cores = filled(XEON, asks("a", 3, cpus=CORES))
    assert decide(XEON, cores, asks("a", 3, cpus=CORES), Kin()).exclusive == cores.exclusive


@pytest.mark.parametrize(("had", "asked"), [(4, 8), (8, 8)], ids=["it grows", "asked again"])
def test_what_it_has_counts_as_left_when_it_is_asked_whether_the_machine_keeps_a_cpu(had, asked):
    before = filled(EIGHTS, asks("x", 4, cpus=OWN))
    _, before = settle(EIGHTS, before, asks("a", had, group="y", cpus=OWN), at("1"))
    decision = decide(EIGHTS, before, asks("a", asked, group="y", cpus=OWN), Kin())
    assert (decision.numa_nodes, decision.exclusive) == (nodes("1"), cpus("8-15"))


def test_from_own_to_shared_the_pool_grows_again():
    before = filled(XEON, asks("a", 4, cpus=OWN), asks("b"))
    decision = decide(XEON, before, asks("a", 4), Kin())
    assert (decision.exclusive, decision.cpus) == (cpus(""), XEON.node(0).cpus)
    assert dict(decision.updates) == {"b-main": XEON.node(0).cpus}
