"""Pools follow from the occupancy: they shrink and grow by themselves, and `due` tells whose CPUs are to be set anew."""

from __future__ import annotations

from dataclasses import replace

from placement import pools
from placement.cpuset import CpuSet
from placement.occupancy import Holding, Occupancy, Seat
from placement.optin import Cpus, Pool
from placement.rules import Rules
from tests import machines
from tests.placement.asking import asks, cpus, demand, filled, nodes, settle

SMALL = machines.SMALL
OWN = Cpus.EXCLUSIVE


def foreign(occupancy: Occupancy, container: str, **more) -> Occupancy:
    """With a container that has not opted in."""
    seat = Seat(container, f"pod-{container}", "", nodes("0-1"), demand(0, 0))
    return occupancy.seated(seat).held(Holding(container, "main", seat.pod, container, **more))


def test_the_shared_pool_grows_when_own_cpus_come_back():
    running = filled(SMALL, asks("a"), asks("own", 2, cpus=OWN), asks("b", 0))
    assert pools.due(SMALL, running) == ()
    stopped = running.without_holding("own-main")
    assert dict(pools.due(SMALL, stopped)) == {"a-main": cpus("0-3"), "b-main": cpus("0-3")}


def test_containers_that_have_not_opted_in_are_left_where_they_are():
    before = foreign(Occupancy(), "stranger")
    decision, after = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert decision.updates == ()
    assert pools.due(SMALL, after) == ()


def test_by_the_operators_rule_everyone_keeps_off_own_cpus():
    before = foreign(Occupancy(rules=Rules(everyone=True)), "stranger")
    decision, after = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert dict(decision.updates) == {"stranger": cpus("2-7")}
    assert after.holdings["stranger"].cpus == cpus("2-7")
    assert dict(pools.due(SMALL, after.without_holding("own-main"))) == {"stranger": cpus("0-7")}


def test_whose_cpus_somebody_else_sets_is_never_updated():
    before = foreign(Occupancy(rules=Rules(everyone=True)), "stranger", cpus=cpus("4-7"), foreign=True)
    decision, _ = settle(SMALL, before, asks("own", 2, cpus=OWN))
    assert decision.updates == ()


def test_own_cpus_of_a_foreign_container_are_nobody_elses():
    before = foreign(Occupancy(), "static", cpus=cpus("0-1"), exclusive=cpus("0-1"), foreign=True)
    decision, _ = settle(SMALL, before, asks("a", 2, group="shop/a"))
    assert decision.cpus.isdisjoint(cpus("0-1"))


def test_members_that_were_left_open_stay_so():
    before = filled(SMALL, asks("big", 9), asks("own", 1, cpus=OWN))
    assert before.holdings["big-main"].cpus == CpuSet()
    assert pools.due(SMALL, before) == ()


def test_a_vanished_pool_takes_nobodys_cpus_away():
    before = filled(SMALL, asks("a"))
    assert pools.due(SMALL, before.with_reserved(cpus("0-3"))) == ()


def test_reclaimed_pods_grow_back_when_requests_go():
    before = filled(SMALL, asks("a", 3), asks("low", 1, pool=Pool.RECLAIMED))
    low = before.holdings["low-main"]
    assert before.seats["low"].numa_nodes == nodes("0"), "beside its kin, although little is left"
    assert low.cpus == cpus("3")
    assert dict(pools.due(SMALL, before.without_pod("a"))) == {"low-main": cpus("0-3")}


def test_reclaimed_pods_always_keep_a_cpu():
    before = filled(SMALL, asks("a", 4), asks("low", 1, pool=Pool.RECLAIMED))
    assert len(before.holdings["low-main"].cpus) == 1
    tight = replace(before, holdings=before.holdings).with_reserved(cpus("0-2"))
    assert pools.reclaimed(SMALL, tight, nodes("0")) == cpus("3")


def test_own_cpus_are_not_what_the_shared_pool_needs():
    before = filled(SMALL, asks("own", 2, cpus=OWN), asks("a", 1), asks("low", 1, pool=Pool.RECLAIMED))
    assert before.holdings["low-main"].cpus == cpus("3")
