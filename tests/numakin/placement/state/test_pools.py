"""Pools follow from the occupancy: they shrink and grow by themselves, and `due` tells whose CPUs are to be set anew."""

from __future__ import annotations

from dataclasses import replace

from numakin.placement.decide.decide import Kin, decide
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.rules import Rules
from numakin.placement.optin.parsing import Cpus, Pool
from numakin.placement.state import pools
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from tests import machines
from tests.numakin.placement.asking import asks, at, cpus, demand, filled, nodes, settle

SMALL = machines.SMALL
OWN = Cpus.EXCLUSIVE


def externally_managed(occupancy: Occupancy, container: str, **more) -> Occupancy:
    """With a container that has not opted in."""
    reservation = Reservation(container, f"pod-{container}", "", nodes("0-1"), demand(0, 0))
    return occupancy.with_reservation(reservation).with_allocation(
        Allocation(container, "main", reservation.pod, container, **more)
    )


def test_isolated_cpus_are_in_no_pool_and_nobodys_own():
    machine = machines.ISOLATED
    _, after = settle(machine, Occupancy(), asks("a", 2))
    assert pools.shared(machine, after, machine.cpu_nodes) == cpus("0-4,8-19")
    _, after = settle(machine, after, asks("b", 7, 0, cpus=OWN, group="x/b"))
    _, after = settle(machine, after, asks("c", 9, 0, cpus=OWN, group="x/c"))
    assert after.exclusive.isdisjoint(cpus("5-7"))
    assert decide(machine, after, asks("d", 1, 0), Kin()).cpus <= machine.cpus


def test_a_core_with_an_isolated_sibling_is_nobodys_whole_core():
    """4 shares its core with 5, which is isolated."""
    decision, _ = settle(machines.ISOLATED, Occupancy(), asks("a", 7, 0, cpus=Cpus.EXCLUSIVE_CORES), at("0"))
    assert decision.numa_nodes == nodes("1")
    decision, _ = settle(machines.ISOLATED, Occupancy(), asks("a", 4, 0, cpus=Cpus.EXCLUSIVE_CORES), at("0"))
    assert decision.exclusive <= cpus("0-3,8-9")


def test_the_shared_pool_grows_when_exclusive_cpus_come_back():
    running = filled(SMALL, asks("a"), asks("own", 2, cpus=OWN), asks("b", 0))
    assert pools.due(SMALL, running) == ()
    stopped = running.without_allocation("own-main")
    assert dict(pools.due(SMALL, stopped)) == {"a-main": cpus("0-3"), "b-main": cpus("0-3")}


def test_who_is_kept_within_another_owners_cpus_gets_none_beyond_them_however_wide_its_home_gets():
    running = filled(SMALL, asks("a"))
    held, home = running.allocations["a-main"], running.reservations["a"]
    wide = running.changed(
        reservations={home.key: replace(home, numa_nodes=nodes("0-1"))},
        allocations={held.container: replace(held, within=cpus("0-6"))},
    )
    assert dict(pools.due(SMALL, wide)) == {"a-main": cpus("0-6")}
    there = wide.with_allocation(wide.allocations["a-main"].resized(cpus("0-6")))
    assert pools.due(SMALL, there) == ()


def test_containers_that_have_not_opted_in_are_left_where_they_are():
    before = externally_managed(Occupancy(), "stranger")
    decision, after = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert decision.updates == ()
    assert pools.due(SMALL, after) == ()


def test_by_the_operators_rule_everyone_keeps_off_exclusive_cpus():
    before = externally_managed(Occupancy(rules=Rules(everyone=True)), "stranger")
    decision, after = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert dict(decision.updates) == {"stranger": cpus("2-7")}
    assert after.allocations["stranger"].cpus == cpus("2-7")
    assert dict(pools.due(SMALL, after.without_allocation("own-main"))) == {"stranger": cpus("0-7")}


def test_whose_cpus_somebody_else_sets_is_never_updated():
    before = externally_managed(
        Occupancy(rules=Rules(everyone=True)), "stranger", cpus=cpus("4-7"), externally_managed=True
    )
    decision, _ = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert decision.updates == ()


def test_exclusive_cpus_of_a_foreign_container_are_nobody_elses():
    before = externally_managed(Occupancy(), "static", cpus=cpus("0-1"), exclusive=cpus("0-1"), externally_managed=True)
    decision, _ = settle(SMALL, before, asks("a", 2, group="shop/a"))
    assert decision.cpus.isdisjoint(cpus("0-1"))


def test_members_that_were_left_open_stay_so():
    before = filled(SMALL, asks("big", 9), asks("own", 1, cpus=OWN))
    assert before.allocations["big-main"].cpus == CpuSet()
    assert pools.due(SMALL, before) == ()


def test_a_vanished_pool_takes_nobodys_cpus_away():
    before = filled(SMALL, asks("a"))
    assert pools.due(SMALL, replace(before, reserved=cpus("0-3"))) == ()


def test_reclaimed_pods_grow_back_when_requests_go():
    before = filled(SMALL, asks("a", 3), asks("low", 1, pool=Pool.RECLAIMED))
    low = before.allocations["low-main"]
    assert before.reservations["low"].numa_nodes == nodes("0"), "beside its kin, although little is left"
    assert low.cpus == cpus("3")
    assert dict(pools.due(SMALL, before.without_pod("a"))) == {"low-main": cpus("0-3")}


def test_reclaimed_pods_always_keep_a_cpu():
    before = filled(SMALL, asks("a", 4), asks("low", 1, pool=Pool.RECLAIMED))
    assert len(before.allocations["low-main"].cpus) == 1
    tight = replace(before, reserved=cpus("0-2"))
    assert pools.reclaimed(SMALL, tight, nodes("0")) == cpus("3")


def test_exclusive_cpus_are_not_what_the_shared_pool_needs():
    before = filled(SMALL, asks("own", 2, cpus=OWN), asks("a", 1), asks("low", 1, pool=Pool.RECLAIMED))
    assert before.allocations["low-main"].cpus == cpus("3")
